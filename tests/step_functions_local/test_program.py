"""Finding, starting and stopping Step Functions Local."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from local.errors import CommandError
from local.paths import PROJECT, STATE_VARIABLE
from local.ports import free_port
from local.step_functions_local import program
from local.step_functions_local.program import Container, Jar
from tests.step_functions_local import stand_in, stand_in_docker
from tests.step_functions_local.machine import write_program

pytestmark = pytest.mark.xdist_group("sfn-local")

EMULATOR = "http://127.0.0.1:4566"


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH; the state folder is beside it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    monkeypatch.setenv(stand_in_docker.LOG_VARIABLE, str(tmp_path / "docker.log"))
    return programs


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    path = tmp_path / "StepFunctionsLocal.jar"
    path.write_bytes(b"")
    return path


def write_java(programs: Path, says: str) -> None:
    path = programs / "java"
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    path.chmod(0o755)


def write_docker(programs: Path) -> None:
    write_program(programs / "docker", "-m", "tests.step_functions_local.stand_in_docker")


# ---------------------------------------------------------------- the JAR


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_201"', 8),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25" 2025-09-16 LTS', 25),
        ("Error: no Java here", None),
        ("", None),
    ],
)
def test_the_version_of_java_is_read(text: str, version: int | None) -> None:
    assert program.java_version(text) == version


def test_the_jar_that_the_shell_names_is_used(shell: Path, jar: Path) -> None:
    write_java(shell, 'openjdk version "17.0.15"')

    found = program.find({program.JAR_VARIABLE: str(jar)})

    assert found == Jar(str(shell / "java"), jar, 8083)


def test_a_jar_that_is_not_there_is_named(shell: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"/gone\.jar, which is no readable file"):
        program.find({program.JAR_VARIABLE: str(tmp_path / "gone.jar")})


@pytest.mark.usefixtures("shell")
def test_a_machine_without_java_is_told(jar: Path) -> None:
    with pytest.raises(CommandError, match="no `java` on the PATH"):
        program.find({program.JAR_VARIABLE: str(jar)})


def test_an_old_java_is_refused_with_what_it_says(shell: Path, jar: Path) -> None:
    write_java(shell, 'openjdk version "11.0.27"')

    with pytest.raises(CommandError, match=r'needs Java 17 or newer; .* says .*"11\.0\.27"'):
        program.find({program.JAR_VARIABLE: str(jar)})


def test_the_command_line_of_the_jar_is_the_documented_one(jar: Path) -> None:
    command = Jar("java", jar).command(EMULATOR, 0.02)

    flags = stand_in.parse(command[1:])

    assert command[0] == "java"
    assert (flags.aws_account, flags.aws_region) == ("000000000000", "us-east-1")
    assert flags.wait_time_scale == 0.02
    for service in ("lambda", "dynamodb", "sqs", "step_functions"):
        assert getattr(flags, f"{service}_endpoint") == EMULATOR


def test_a_taken_port_is_named(jar: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]

        with pytest.raises(CommandError, match=f"port {port} and on no other"):
            Jar("java", jar, port).prepare()


# ---------------------------------------------------------------- the image


def test_without_jar_and_docker_the_message_says_how_to_get_it(shell: Path) -> None:
    with pytest.raises(CommandError) as told:
        program.find({})

    for needed in (program.JAR_VARIABLE, program.GUIDE, program.IMAGE, "Java 17"):
        assert needed in str(told.value)


def test_a_docker_client_without_an_engine_is_no_docker(
    shell: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_docker(shell)
    monkeypatch.delenv(stand_in_docker.SYSTEM_VARIABLE, raising=False)

    with pytest.raises(CommandError, match="Step Functions Local was not found"):
        program.find({})


def test_on_linux_the_container_shares_the_machines_network(
    shell: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_docker(shell)
    monkeypatch.setenv(stand_in_docker.SYSTEM_VARIABLE, "Debian GNU/Linux 12")
    mocks = tmp_path / "mocks.json"

    found = program.find({program.MOCKS_VARIABLE: str(mocks)})

    assert isinstance(found, Container)
    command = found.command(EMULATOR, 0.02)
    options = stand_in_docker.parse(command[2:])
    assert command[1] == "run"
    assert options.network == "host"
    assert found.port == 8083
    assert found.seen_by_it(EMULATOR) == EMULATOR
    assert f"LAMBDA_ENDPOINT={EMULATOR}" in options.env
    target = "/home/StepFunctionsLocal/MockConfigFile.json"
    assert options.mount == f"type=bind,readonly,source={mocks},destination={target}"
    assert f"SFN_MOCK_CONFIG={target}" in options.env


def test_on_docker_desktop_it_is_published_on_loopback_and_reaches_back_by_name(
    shell: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_docker(shell)
    monkeypatch.setenv(stand_in_docker.SYSTEM_VARIABLE, "Docker Desktop")

    found = program.find({})

    assert isinstance(found, Container)
    options = stand_in_docker.parse(found.command(EMULATOR, 0.02)[2:])
    assert options.publish == f"127.0.0.1:{found.port}:8083"
    assert found.seen_by_it(EMULATOR) == "http://host.docker.internal:4566"
    assert "SQS_ENDPOINT=http://host.docker.internal:4566" in options.env


def test_the_container_is_started_waited_for_and_stopped(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    write_docker(programs)
    port = free_port()
    environment = os.environ | {
        STATE_VARIABLE: str(tmp_path / "state"),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        stand_in.PORT_VARIABLE: str(port),
        stand_in_docker.LOG_VARIABLE: str(tmp_path / "docker.log"),
        stand_in_docker.SYSTEM_VARIABLE: "Debian GNU/Linux 12",
    }
    environment.pop(program.JAR_VARIABLE, None)
    start = (
        f"from local.step_functions_local import program; program.PORT = {port}; "
        f"found = program.find(); found.prepare(); program.start(found, '{EMULATOR}', 0.02)"
    )

    def run(*command: str) -> None:
        subprocess.run([sys.executable, *command], cwd=PROJECT, env=environment, check=True)

    run("-c", start)
    answered = program.answers(f"http://127.0.0.1:{port}")
    run("-m", "local", "down")

    assert answered
    assert not program.answers(f"http://127.0.0.1:{port}")
    asked = [json.loads(line) for line in (tmp_path / "docker.log").read_text().splitlines()]
    name = asked[2][asked[2].index("--name") + 1]
    assert asked[-1] == ["stop", name]
