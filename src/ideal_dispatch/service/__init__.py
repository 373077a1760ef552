"""The overlay beside a dispatch centre's CAD: HTTP service, audit and the dispatcher's desk."""
