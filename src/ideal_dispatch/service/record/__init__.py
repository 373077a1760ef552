"""The database: state rows, and the chained log of everything that changed them."""
