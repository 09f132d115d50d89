"""Mends of AWS CloudFormation and the SAM transform.

MiniStack takes a second to import it, longer than everything else together.
"""

import contextvars
import functools
import importlib
import json
from typing import Any

from local.emulator import upstream

_parameters: contextvars.ContextVar[dict[str, str] | None] = contextvars.ContextVar(
    "parameters", default=None
)


@upstream.before_first_use_of("cloudformation")
def generate_secrets_as_asked() -> None:
    """`GenerateSecretString` keeps to its options, `ExcludePunctuation` among them.

    Rule: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-properties-secretsmanager-secret-generatesecretstring.html
    MiniStack's own GetRandomPassword knows them, and CloudFormation does not ask it.
    """
    provisioners = upstream.module("services.cloudformation.provisioners")
    secretsmanager = upstream.module("services.secretsmanager")

    def secret_string(original: Any, properties: dict[str, Any]) -> str:
        options = properties.get("GenerateSecretString")
        if not options or properties.get("SecretString"):
            return str(original(properties))
        status, _, body = secretsmanager._get_random_password(options)
        if status != 200:
            raise ValueError(json.loads(body)["message"])
        password = str(json.loads(body)["RandomPassword"])
        if "SecretStringTemplate" not in options:
            return password
        template = json.loads(options["SecretStringTemplate"])
        return json.dumps({**template, options["GenerateStringKey"]: password})

    upstream.wrap(provisioners, "_sm_secret_string", secret_string)


@upstream.before_first_use_of("cloudformation")
def refer_to_secrets_by_arn() -> None:
    """`!Ref` of a secret is its ARN.

    Rule: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-secretsmanager-secret.html,
    return values. With the name, which MiniStack gives, no policy's Resource would match.
    """
    provisioners = upstream.module("services.cloudformation.provisioners")
    handlers = provisioners._RESOURCE_HANDLERS["AWS::SecretsManager::Secret"]
    create, update, delete = handlers["create"], handlers["update"], handlers["delete"]

    def created(*args: Any) -> tuple[str, dict[str, str]]:
        _, attributes = create(*args)
        return attributes["Arn"], attributes

    def updated(arn: str, *args: Any, **kwargs: Any) -> tuple[str, dict[str, str]]:
        _, attributes = update(name(arn), *args, **kwargs)
        return attributes["Arn"], attributes

    def deleted(arn: str, *args: Any) -> None:
        delete(name(arn), *args)

    def name(arn: str) -> str:
        """The secret's name: the ARN ends in it, a hyphen and six random characters."""
        return arn.rpartition(":secret:")[2][:-7]

    handlers |= {"create": created, "update": updated, "delete": deleted}


@upstream.before_first_use_of("cloudformation")
def tell_the_sam_transform_the_parameters() -> None:
    """The SAM transform knows the values of the template's parameters.

    Rule: a changed parameter in `CodeUri` publishes a new version under AutoPublishAlias.
    https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-resource-function.html
    """
    engine = upstream.module("services.cloudformation.engine")

    def apply(original: Any, template: Any, provided: Any = None, previous: Any = None) -> Any:
        prepare_translator()
        token = _parameters.set(engine._transform_parameters(template, provided, previous))
        try:
            return original(template, provided, previous)
        finally:
            _parameters.reset(token)

    @functools.cache
    def prepare_translator() -> None:
        # Imported with the first template, as MiniStack does: it takes half a second.
        translator = importlib.import_module("samtranslator.translator.transform")
        upstream.wrap(translator, "transform", transform)

    def transform(original: Any, template: Any, values: dict[str, str], *rest: Any) -> Any:
        return original(template, {**values, **(_parameters.get() or {})}, *rest)

    for user in ("changesets", "handlers"):
        upstream.wrap(
            upstream.module(f"services.cloudformation.{user}"), "_apply_transforms", apply
        )
