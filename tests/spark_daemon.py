"""The process that Spark forks its Python workers from: it has imported what each of them would import."""

from contextlib import suppress
from importlib import import_module

import pyspark.daemon

if __name__ == "__main__":
    with suppress(ImportError):  # a Python of Spark's own choice may have none of them, and makes rows all the same
        import_module("dpforest.engines.spark")
        import_module("pyspark.worker")
        import_module("pyspark.sql.pandas.serializers")
    pyspark.daemon.manager()
