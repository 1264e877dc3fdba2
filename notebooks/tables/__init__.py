"""What the notebooks compute: one module a subject. `figures` hands all of it on."""
