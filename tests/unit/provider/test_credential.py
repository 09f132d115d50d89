"""The API key, and its rotation."""

import pytest
from provider.credential import MAX_AGE_SECONDS, MIN_AGE_SECONDS, Credential


class Vault:
    """Where the key is kept, and the time."""

    def __init__(self) -> None:
        self.key, self.now, self.fetches = "old", 100.0, 0

    def fetch(self) -> str:
        self.fetches += 1
        return self.key


@pytest.fixture
def vault() -> Vault:
    return Vault()


@pytest.fixture
def credential(vault: Vault) -> Credential:
    return Credential(vault.fetch, lambda: vault.now)


def test_only_the_key_is_accepted(credential: Credential) -> None:
    assert credential.accepts("old")
    assert not any(credential.accepts(wrong) for wrong in ("", "ol", "oldd", "OLD", "öld"))


def test_it_is_fetched_once_for_many_requests(credential: Credential, vault: Vault) -> None:
    for _ in range(100):
        credential.accepts("old")

    assert vault.fetches == 1


def test_a_rotated_key_opens_at_once(credential: Credential, vault: Vault) -> None:
    credential.accepts("old")
    vault.key = "new"
    vault.now += MIN_AGE_SECONDS

    assert credential.accepts("new")
    assert not credential.accepts("old")


def test_a_key_that_was_rotated_away_opens_for_a_limited_time(
    credential: Credential, vault: Vault
) -> None:
    credential.accepts("old")
    vault.key = "new"
    vault.now += MAX_AGE_SECONDS

    assert not credential.accepts("old")


def test_wrong_keys_do_not_hammer_the_vault(credential: Credential, vault: Vault) -> None:
    for _ in range(100):
        credential.accepts("wrong")
        vault.now += MIN_AGE_SECONDS / 100

    assert vault.fetches <= 2
