import pytest
from writers import write


@pytest.fixture(scope="session")
def logs(tmp_path_factory):
    """Logs of each kind, written once: source and path by kind."""
    made = {}

    def of(kind):
        if kind not in made:
            made[kind] = write(kind, tmp_path_factory.mktemp(kind))
        return made[kind]

    return of
