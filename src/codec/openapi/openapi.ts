/** The OpenAPI documents, versions 2 and 3, of the served groups. */
import type { JsonObject } from '../../lib/json.ts'
import type { OpenApiGroup } from './openapi-groups.ts'
import type { Operation, Parameter } from './openapi-operations.ts'
import { OpenApiSchemas } from './openapi-schemas.ts'

const BEARER_TOKEN = {
  type: 'apiKey',
  name: 'authorization',
  in: 'header',
  description: 'Bearer token.',
}

/** The document of one group. `release` is the version of the API's behaviour. */
export function openApiV3(group: OpenApiGroup, release: string): JsonObject {
  const schemas = new OpenApiSchemas(group, 'v3')
  const paths = pathItems(group.operations, (operation) => ({
    ...head(group, operation),
    parameters: operation.parameters.map((parameter) => ({
      ...placed(parameter),
      schema: { type: parameter.type, uniqueItems: true },
    })),
    ...(operation.body === undefined
      ? {}
      : {
          requestBody: {
            content: contents(operation.body.consumes, schemas.ref(operation.body.schema)),
            ...(operation.body.isRequired ? { required: true } : {}),
          },
        }),
    responses: responses(operation, (schema) => ({
      content: contents(operation.produces, schemas.ref(schema)),
    })),
  }))
  return {
    openapi: '3.0.0',
    info: { title: 'tidings', version: release },
    paths,
    components: { schemas: schemas.all(), securitySchemes: { BearerToken: BEARER_TOKEN } },
  }
}

/** The document of all groups. */
export function openApiV2(groups: readonly OpenApiGroup[], release: string): JsonObject {
  const paths: JsonObject = {}
  const definitions: JsonObject = {}
  // Sorted, so that the core group does not define a schema that it shares with a named group: the
  // definition of the named group lists the kinds of both.
  for (const group of groups.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
    const schemas = new OpenApiSchemas(group, 'v2')
    Object.assign(
      paths,
      pathItems(group.operations, (operation) => v2Operation(group, operation, schemas)),
    )
    Object.assign(definitions, schemas.all())
  }
  return {
    swagger: '2.0',
    info: { title: 'tidings', version: release },
    paths,
    definitions,
    securityDefinitions: { BearerToken: BEARER_TOKEN },
    security: [{ BearerToken: [] }],
  }
}

function v2Operation(
  group: OpenApiGroup,
  operation: Operation,
  schemas: OpenApiSchemas,
): JsonObject {
  const { body } = operation
  const parameters = operation.parameters.map((parameter) => ({
    ...placed(parameter),
    type: parameter.type,
    uniqueItems: true,
  }))
  return {
    ...head(group, operation),
    consumes: [...(body?.consumes ?? ['*/*'])],
    produces: [...operation.produces],
    parameters:
      body === undefined
        ? parameters
        : [
            {
              name: 'body',
              in: 'body',
              ...(body.isRequired ? { required: true } : {}),
              schema: schemas.ref(body.schema),
            },
            ...parameters,
          ],
    responses: responses(operation, (schema) => ({ schema: schemas.ref(schema) })),
  }
}

/** The members of an operation that both versions share. */
function head(group: OpenApiGroup, operation: Operation): JsonObject {
  const { name, version } = group
  const tag = name === '' ? 'core_v1' : `${name.replace(/\.k8s\.io$/, '')}_${version}`
  return {
    tags: [tag],
    description: operation.doc,
    operationId: operation.id,
    ...(operation.isDeprecated ? { deprecated: true } : {}),
    ...(operation.action === undefined
      ? {}
      : {
          'x-kubernetes-action': operation.action,
          'x-kubernetes-group-version-kind': {
            group: name,
            version,
            kind: operation.kind,
          },
        }),
  }
}

function placed(parameter: Parameter): JsonObject {
  return {
    name: parameter.name,
    in: parameter.in,
    description: parameter.doc,
    ...(parameter.in === 'path' ? { required: true } : {}),
  }
}

function contents(mediaTypes: readonly string[], schema: JsonObject): JsonObject {
  return Object.fromEntries(mediaTypes.map((mediaType) => [mediaType, { schema }]))
}

function responses(operation: Operation, contentOf: (schema: string) => JsonObject): JsonObject {
  const own = Object.entries(operation.responses).map(([code, schema]) => [
    code,
    { description: DESCRIPTIONS[code] ?? 'OK', ...contentOf(schema) },
  ])
  return Object.fromEntries([...own, ['401', { description: 'Unauthorized' }]])
}

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
}

function pathItems(
  operations: readonly Operation[],
  render: (operation: Operation) => JsonObject,
): JsonObject {
  const paths: Record<string, JsonObject> = {}
  for (const operation of operations) {
    const { path, method } = operation
    paths[path] = { ...paths[path], [method]: render(operation) }
  }
  return paths
}
