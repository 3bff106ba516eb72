"""The version of the whole distribution, and those of libraries."""

__version__ = "0.7.0"


def version_of(library: str) -> str:
    """The version of a library, or that it is not installed."""
    # Every command says its version: it does not wait for what looks for others.
    from importlib import metadata

    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "not installed"
