"""Where Crush keeps its database: its own look-up, over a disk made of words."""

from __future__ import annotations

import json

import pytest

from memd.harness.crush import ADAPTER
from memd.harness.crush_store import MAX_PROJECTS, NAMED, Found, look_up, stores
from memd.harness.model import Environment

HOME = b"/home/ann"
W = b"/home/ann/src/w"
ME, ROOT = 1000, 0


class Disk:
    """Folders, files and links; everything is ours unless it is said to be somebody else's."""

    def __init__(self) -> None:
        self.files: dict[bytes, bytes] = {}
        self.folders: set[bytes] = {b"/"}
        self.owners: dict[bytes, int] = {}
        self.links: dict[bytes, bytes] = {}
        self.tops: list[bytes] = []
        self.followed: list[bytes] = []
        self.folder(W)

    def folder(self, path: bytes, owner: int = ME) -> Disk:
        while path not in self.folders:
            self.folders.add(path)
            self.owners[path] = owner
            path = path.rpartition(b"/")[0] or b"/"
        return self

    def config(self, path: bytes, data: object, owner: int = ME, **more: object) -> Disk:
        self.files[path] = json.dumps({"options": {"data_directory": data}, **more}).encode()
        self.owners[path] = owner
        return self

    def top(self, path: bytes) -> Disk:
        self.tops.append(path)
        return self.folder(path)

    def read(self, path: bytes) -> bytes | None:
        return self.files.get(self.real(path))

    def follow(self, path: bytes) -> bytes | None:
        self.followed.append(path)
        return self.read(path)

    def owner(self, path: bytes) -> int | None:
        real = self.real(path)
        return self.owners.get(real, ME) if real in self.files or real in self.folders else None

    def is_folder(self, path: bytes) -> bool:
        return self.real(path) in self.folders

    def real(self, path: bytes) -> bytes:
        for link, target in self.links.items():
            if path == link or path.startswith(link + b"/"):
                return self.real(target + path[len(link) :])
        return path

    def checkout(self, path: bytes) -> bytes:
        found = [top for top in self.tops if path == top or path.startswith(top + b"/")]
        return max(found, key=len, default=b"")


def found(disk: Disk, place: bytes = W, **variables: bytes) -> Found:
    return look_up(place, Environment(home=HOME, variables=variables), disk)


def folder(disk: Disk, place: bytes = W, **variables: bytes) -> bytes:
    return found(disk, place, **variables).folder


# ------------------------------------------------------------------------------- the closest `.crush`


def test_a_store_that_is_still_to_be_made_lies_in_the_launch_directory() -> None:
    assert found(Disk()) == Found(folder=W + b"/.crush", project=W, is_shared=False)


def test_the_closest_folder_within_the_checkout_is_chosen() -> None:
    disk = Disk().top(W).folder(W + b"/.crush").folder(W + b"/a/b")
    assert folder(disk, W + b"/a/b") == W + b"/.crush"
    assert found(disk, W + b"/a/b").project == W
    disk.folder(W + b"/a/.crush")
    assert found(disk, W + b"/a/b") == Found(folder=W + b"/a/.crush", project=W + b"/a", is_shared=False)


def test_one_above_the_checkout_is_not() -> None:
    disk = Disk().top(W).folder(b"/home/ann/src/.crush")
    assert folder(disk) == W + b"/.crush"


def test_outside_a_checkout_only_the_launch_directory_is_looked_at() -> None:
    disk = Disk().folder(W + b"/.crush").folder(W + b"/a")
    assert folder(disk, W + b"/a") == W + b"/a/.crush"
    assert folder(disk, W) == W + b"/.crush"


def test_the_home_directory_is_a_barrier() -> None:
    disk = Disk().top(b"/home").folder(HOME + b"/.crush").folder(b"/home/.crush")
    assert folder(disk) == W + b"/.crush"


def test_a_home_behind_a_link_is_a_barrier_too() -> None:
    disk = Disk().top(b"/home").folder(HOME + b"/.crush")
    disk.links[b"/people/ann"] = HOME
    environment = Environment(home=b"/people/ann")
    assert look_up(b"/people/ann/src/w", environment, disk).folder == W + b"/.crush"


@pytest.mark.parametrize("owner", [ROOT, -1])
def test_a_folder_of_somebody_else_or_one_that_cannot_be_examined_ends_the_search(owner: int) -> None:
    disk = Disk().top(W).folder(W + b"/.crush").folder(W + b"/a/b")
    disk.folder(W + b"/a/.crush", owner)
    assert folder(disk, W + b"/a/b") == W + b"/a/b/.crush"


def test_a_file_of_that_name_is_passed_over() -> None:
    disk = Disk().top(W).folder(W + b"/.crush").folder(W + b"/a")
    disk.files[W + b"/a/.crush"] = b""
    assert folder(disk, W + b"/a") == W + b"/.crush"


# -------------------------------------------------------------------------------- the configuration


GLOBAL = HOME + b"/.config/crush/crush.json"
DATA = HOME + b"/.local/share/crush/crush.json"


def test_the_last_file_that_says_where_wins() -> None:
    disk = Disk().top(W)
    disk.config(b"/etc/crush/crush.json", "/d/system", ROOT)
    assert folder(disk) == b"/d/system"
    disk.config(GLOBAL, "/d/global")
    assert folder(disk) == b"/d/global"
    disk.config(DATA, "/d/data")
    assert folder(disk) == b"/d/data"
    disk.config(W + b"/crush.json", "/d/project")
    assert folder(disk) == b"/d/project"
    disk.config(W + b"/.crush.json", "/d/dotted")
    assert folder(disk) == b"/d/dotted"
    disk.folder(W + b"/a").config(W + b"/a/crush.json", "/d/deeper")
    assert folder(disk, W + b"/a") == b"/d/deeper"
    assert folder(disk, W) == b"/d/dotted"


def test_a_file_without_a_word_of_it_changes_nothing() -> None:
    disk = Disk().top(W).config(GLOBAL, "/d/global")
    for text in (b"{}", b"not json", b"null", b'{"options":null}', b'{"options":{"data_directory":7}}', b""):
        disk.files[W + b"/crush.json"] = text
        assert folder(disk) == b"/d/global"


def test_an_empty_value_falls_back_to_the_look_up() -> None:
    disk = Disk().top(W).config(GLOBAL, "/d/global").config(W + b"/crush.json", "")
    assert folder(disk) == W + b"/.crush"


def test_project_files_of_another_user_are_ignored() -> None:
    disk = Disk().top(W).config(W + b"/crush.json", "/d/theirs", ROOT)
    assert folder(disk) == W + b"/.crush"


def test_files_above_the_checkout_are_not_of_the_project() -> None:
    disk = Disk().top(W).config(b"/home/ann/src/crush.json", "/d/above")
    assert folder(disk) == W + b"/.crush"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("data", W + b"/a/data"),
        ("../data", W + b"/data"),
        ("./x/../y//z/", W + b"/a/y/z"),
        ("/../d", b"/d"),
        (" /d ", b"/d"),
    ],
)
def test_a_relative_value_is_seen_from_the_launch_directory(value: str, says: bytes) -> None:
    disk = Disk().top(W).folder(W + b"/a").config(GLOBAL, value)
    assert folder(disk, W + b"/a") == says


def test_variables_move_the_global_files() -> None:
    disk = Disk()
    disk.config(b"/c/crush.json", "/d/own").config(b"/x/crush/crush.json", "/d/xdg")
    assert folder(disk, XDG_CONFIG_HOME=b"/x") == b"/d/xdg"
    assert folder(disk, XDG_CONFIG_HOME=b"/x", CRUSH_GLOBAL_CONFIG=b"/c/") == b"/d/own"
    assert folder(disk, XDG_DATA_HOME=b"/x") == b"/d/xdg"
    assert folder(disk, XDG_DATA_HOME=b"/x", CRUSH_GLOBAL_DATA=b"/c") == b"/d/own"
    assert folder(disk, CRUSH_GLOBAL_CONFIG=b"  ", XDG_CONFIG_HOME=b"") == W + b"/.crush"


# ------------------------------------------------------------------------------------ whose it is


def test_the_argument_goes_before_everything() -> None:
    disk = Disk().top(W).config(W + b"/crush.json", "/d/project").folder(W + b"/.crush")
    assert folder(disk, **{NAMED: W + b"/elsewhere"}) == W + b"/elsewhere"


def test_a_store_within_the_project_is_its_own_and_one_outside_is_shared() -> None:
    disk = Disk().top(W).folder(W + b"/a")
    assert found(disk, W + b"/a", **{NAMED: W + b"/data"}) == Found(
        folder=W + b"/data", project=W, is_shared=False
    )
    assert found(disk, W + b"/a", **{NAMED: b"/d"}) == Found(folder=b"/d", project=W, is_shared=True)
    assert found(disk, W + b"/a", **{NAMED: W + b"-not/d"}).is_shared


def test_a_store_behind_a_link_out_of_the_project_is_shared() -> None:
    disk = Disk().top(W).folder(W + b"/.crush").folder(b"/far/store")
    disk.links[W + b"/.crush"] = b"/far/store"
    assert found(disk) == Found(folder=b"/far/store", project=W, is_shared=True)


def test_a_launch_directory_behind_a_link_is_the_real_one() -> None:
    disk = Disk().top(W).folder(W + b"/.crush")
    disk.links[b"/short"] = W
    assert found(disk, b"/short") == Found(folder=W + b"/.crush", project=W, is_shared=False)


# ----------------------------------------------------------------------------------- all of them


def listed(disk: Disk, *projects: object) -> Disk:
    data = HOME + b"/.local/share/crush/projects.json"
    disk.files[data] = json.dumps({"projects": list(projects)}).encode()
    return disk


def project(path: str, data: str) -> dict[str, str]:
    return {"path": path, "data_dir": data, "last_accessed": "2026-02-01T10:00:00Z"}


def test_every_place_and_every_project_that_crush_lists_has_its_store() -> None:
    disk = listed(Disk().top(W).top(b"/x/y"), project("/x/y", "/x/y/.crush"), project("/x/z", "/d"))
    known = stores(Environment(home=HOME, places=(W,)), disk)
    assert [(store.root, store.cwd, store.shared) for store in known] == [
        (W + b"/.crush", W, ()),
        (b"/x/y/.crush", b"/x/y", ()),
        (b"/d", b"", (b"/x/z",)),
    ]
    assert all(store.database and store.patterns == ("crush.db",) for store in known)
    assert disk.followed == [HOME + b"/.local/share/crush/projects.json"]


def test_a_store_that_several_share_is_named_once_with_all_of_them() -> None:
    disk = listed(Disk(), project("/x", "/d"), project("/y", "/d"), project("/x", "/d/"))
    (store,) = stores(Environment(home=HOME), disk)
    assert (store.root, store.cwd, store.shared) == (b"/d", b"", (b"/x", b"/y"))


def test_a_store_of_one_project_may_be_shared_by_another() -> None:
    disk = listed(Disk(), project("/y", "/x/.crush"), project("/x", "/x/.crush"))
    (store,) = stores(Environment(home=HOME), disk)
    assert (store.cwd, store.shared) == (b"/x", (b"/y",))


def test_a_launch_below_the_top_keeps_the_directory_of_the_store() -> None:
    disk = Disk().top(W).folder(W + b"/a").folder(W + b"/.crush")
    listed(disk, project(f"{W.decode()}/a", f"{W.decode()}/.crush"))
    (store,) = stores(Environment(home=HOME, places=(W + b"/a",)), disk)
    assert (store.root, store.cwd, store.shared) == (W + b"/.crush", W, ())


@pytest.mark.parametrize(
    "odd",
    [b"", b"[]", b"null", b'{"projects":7}', b'{"projects":[7]}', b'{"projects":[{"path":[],"data_dir":{}}]}',
     b'{"projects":[{"path":"relative","data_dir":"/d"}]}', b'{"projects":[{"path":"/x","data_dir":""}]}',
     b'{"projects":[{"path":"/x\\u0000","data_dir":"/d"}]}'],
)  # fmt: skip
def test_an_odd_list_of_projects_names_none(odd: bytes) -> None:
    disk = Disk()
    disk.files[HOME + b"/.local/share/crush/projects.json"] = odd
    assert stores(Environment(home=HOME), disk) == ()


def test_the_list_of_projects_is_bounded() -> None:
    many = [project(f"/x/{number}", f"/x/{number}/.crush") for number in range(MAX_PROJECTS + 5)]
    assert len(stores(Environment(home=HOME), listed(Disk(), *many))) == MAX_PROJECTS


def test_nothing_is_a_store_that_nobody_started_it_in() -> None:
    assert stores(Environment(home=HOME), Disk().folder(HOME + b"/.crush")) == ()
    assert ADAPTER.stores(Environment(home=HOME)) == ()
