"""The tests of whole programs run on a store of one's choice: test/lib/onstore.py says how."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from onstore import (make_box, pytest_collection_modifyitems, pytest_configure,  # noqa: E402,F401
                     store)
