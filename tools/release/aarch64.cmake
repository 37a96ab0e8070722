# Cross-compilation for aarch64. LLMD_TARGET_HEADERS: the folder with the target's headers of Python.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
file(GLOB Python_INCLUDE_DIR "$ENV{LLMD_TARGET_HEADERS}/python3.*")
