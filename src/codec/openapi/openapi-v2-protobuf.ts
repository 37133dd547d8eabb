/**
 * Encodes OpenAPI version 2 as protobuf, which older clients request: the messages of the gnostic
 * project, as far as our document uses them.
 */
import type { JsonObject } from '../../lib/json.ts'
import {
  type Encode,
  encodeOpenApiDocument,
  flag,
  listOf,
  type Members,
  mapOf,
  message,
  text,
  texts,
  wrapped,
} from './openapi-messages.ts'

/** Encodes a document from `openApiV2`. */
export function openApiV2Protobuf(document: JsonObject): Buffer {
  return encodeOpenApiDocument(document, DOCUMENT, 16)
}

const SCHEMA: Members = {
  $ref: [1, text],
  format: [2, text],
  description: [4, text],
  required: [19, texts],
  additionalProperties: [21, wrapped(1, (...args) => schema(...args))],
  // A single type, or a single schema for all entries, is encoded as a list of one.
  type: [22, wrapped(1, text)],
  items: [23, wrapped(1, (...args) => schema(...args))],
  properties: [25, mapOf(1, (...args) => schema(...args))],
}
const schema: Encode = message(() => SCHEMA, 31)

const BODY_PARAMETER: Members = {
  description: [1, text],
  name: [2, text],
  in: [3, text],
  required: [4, flag],
  schema: [5, schema],
}
const QUERY_PARAMETER: Members = {
  required: [1, flag],
  in: [2, text],
  description: [3, text],
  name: [4, text],
  type: [6, text],
  uniqueItems: [20, flag],
}
const PATH_PARAMETER: Members = {
  required: [1, flag],
  in: [2, text],
  description: [3, text],
  name: [4, text],
  type: [5, text],
  uniqueItems: [19, flag],
}

const bodyParameter = wrapped(
  1,
  wrapped(
    1,
    message(() => BODY_PARAMETER, 6),
  ),
)
const queryParameter = wrapped(
  1,
  wrapped(
    2,
    wrapped(
      3,
      message(() => QUERY_PARAMETER, 23),
    ),
  ),
)
const pathParameter = wrapped(
  1,
  wrapped(
    2,
    wrapped(
      4,
      message(() => PATH_PARAMETER, 22),
    ),
  ),
)

const parameter: Encode = (writer, field, value) => {
  const { in: place } = value as JsonObject
  if (place === 'body') bodyParameter(writer, field, value)
  else (place === 'query' ? queryParameter : pathParameter)(writer, field, value)
}

const RESPONSE: Members = { description: [1, text], schema: [2, wrapped(1, schema)] }

const OPERATION: Members = {
  tags: [1, texts],
  description: [3, text],
  operationId: [5, text],
  produces: [6, texts],
  consumes: [7, texts],
  parameters: [8, listOf(parameter)],
  responses: [
    9,
    mapOf(
      1,
      wrapped(
        1,
        message(() => RESPONSE, 5),
      ),
    ),
  ],
  deprecated: [11, flag],
}
const operation: Encode = message(() => OPERATION, 13)

const PATH_ITEM: Members = {
  get: [2, operation],
  put: [3, operation],
  post: [4, operation],
  delete: [5, operation],
  patch: [8, operation],
}

const INFO: Members = { title: [1, text], version: [2, text] }

const API_KEY: Members = {
  type: [1, text],
  name: [2, text],
  in: [3, text],
  description: [4, text],
}

const DOCUMENT: Members = {
  swagger: [1, text],
  info: [2, message(() => INFO, 7)],
  paths: [
    8,
    mapOf(
      2,
      message(() => PATH_ITEM, 10),
    ),
  ],
  definitions: [9, mapOf(1, schema)],
  security: [12, listOf(mapOf(1, wrapped(1, texts)))],
  securityDefinitions: [
    13,
    mapOf(
      1,
      wrapped(
        2,
        message(() => API_KEY, 5),
      ),
    ),
  ],
}
