"""The contract suites: what every adapter of a port must do, as test classes to derive from.

`store.StoreContract` and `pipeline.PipelineContract` hold a store to its ports and `comparison.ComparisonContract`
to what SQLite does, `blobs.BlobsContract` holds a blob store and `provider.ProviderContract` a provider; each says in
its module how it is bound. They need pytest, pytest-asyncio in `auto` mode and hypothesis, which the extra `test`
brings. Nothing of a particular adapter is here: ours are bound in tests/contract, exactly as a stranger's would be.
"""

import pkgutil

import pytest

# pytest shows the values of a failed assert only in test modules, and in modules registered before their import.
pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)))
