"""The HTTP service and the dispatcher's desk: stateless workers over one database."""
