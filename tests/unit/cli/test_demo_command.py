from pathlib import Path

from tests.unit.cli.test_network_command import ideal


def test_demo_tells_the_story_and_draws_a_map(tmp_path: Path) -> None:
    done = ideal("demo", "--seed", "3", cwd=tmp_path)
    assert "Port Almery" in done.stdout
    assert "from Kelp Point" in done.stdout
    assert "wrote out/demo/city.png" in done.stdout
    assert (tmp_path / "out/demo/city.png").read_bytes().startswith(b"\x89PNG")
    assert max(map(len, done.stdout.splitlines())) <= 80
    again = ideal("demo", "--seed", "3", cwd=tmp_path)
    assert again.stdout == done.stdout
    assert ideal("demo", "--seed", "4", cwd=tmp_path).stdout != done.stdout
