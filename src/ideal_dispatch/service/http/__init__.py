"""The API: connections, what protects them, and the routes."""
