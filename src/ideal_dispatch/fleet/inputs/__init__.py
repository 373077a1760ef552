"""A fleet's city from files: model folders of JEMSS, own files, the embedded city."""
