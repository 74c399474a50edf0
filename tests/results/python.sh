#!/bin/bash
# Runs a check written in Python: MTIL_PYTHON, or the python3 there is. Exit status 77, "skipped", where there is none.
#   python.sh SCRIPT [ARGUMENT…]
python=${MTIL_PYTHON:-python3}
if ! "$python" -c 'import sqlite3' 2>/dev/null; then
    echo "skipped: $python is not there or has no sqlite3; MTIL_PYTHON names another Python"
    exit 77
fi
exec "$python" "$@"
