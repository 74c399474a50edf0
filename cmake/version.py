"""The version that CMakeLists.txt has, by version.cmake, for scikit-build-core."""

import re
import subprocess
import tempfile
from pathlib import Path


def dynamic_metadata(field, settings):
    call = re.search(r"^mtil_version\(.*\)$", Path("CMakeLists.txt").read_text(encoding="utf-8"), re.MULTILINE)[0]
    with tempfile.NamedTemporaryFile("w", suffix=".cmake") as script:
        script.write(f'include(cmake/version.cmake)\n{call}\nexecute_process(COMMAND echo "${{version}}")\n')
        script.flush()
        return subprocess.check_output(["cmake", "-P", script.name], encoding="utf-8").strip()


def get_requires_for_dynamic_metadata(settings):
    return ["cmake>=3.22"]
