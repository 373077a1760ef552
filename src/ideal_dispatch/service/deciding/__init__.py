"""From a call to an advice: city, model and traffic, without HTTP and without a database."""
