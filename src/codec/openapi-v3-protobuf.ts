/**
 * OpenAPI version 3 in protobuf: the message of the gnostic project, as far as our documents use it.
 * A schema, a parameter, a body or an answer can be a reference there, and so is wrapped in a message
 * that says which it is; of ours only schemas are.
 */
import type { JsonObject } from '../lib/json.ts'
import {
  type Encode,
  encodedDocument,
  flag,
  listOf,
  type Members,
  message,
  named,
  text,
  texts,
  wrapped,
} from './openapi-messages.ts'

/** A document made by `openApiV3`. */
export function openApiV3Protobuf(document: JsonObject): Buffer {
  return encodedDocument(document, DOCUMENT, 9)
}

const SCHEMA: Members = {
  uniqueItems: [20, flag],
  required: [23, texts],
  type: [25, text],
  allOf: [26, listOf((...args) => schema(...args))],
  // One schema for all entries is a list of one.
  items: [30, wrapped(1, (...args) => schema(...args))],
  properties: [31, named(1, (...args) => schema(...args))],
  additionalProperties: [32, wrapped(1, (...args) => schema(...args))],
  description: [34, text],
  format: [35, text],
}
const REFERENCE: Members = { $ref: [1, text] }

const ownSchema = wrapped(
  1,
  message(() => SCHEMA, 36),
)
const reference = wrapped(
  2,
  message(() => REFERENCE),
)
const schema: Encode = (writer, field, value) =>
  ('$ref' in (value as JsonObject) ? reference : ownSchema)(writer, field, value)

const MEDIA_TYPE: Members = { schema: [1, schema] }
const mediaTypes: Encode = named(
  1,
  message(() => MEDIA_TYPE, 5),
)

const PARAMETER: Members = {
  name: [1, text],
  in: [2, text],
  description: [3, text],
  required: [4, flag],
  schema: [10, schema],
}
const REQUEST_BODY: Members = { content: [2, mediaTypes], required: [3, flag] }
const RESPONSE: Members = { description: [1, text], content: [3, mediaTypes] }

/** Something that could be a reference, and is not. */
const itself = (fields: Members, extensions: number): Encode =>
  wrapped(
    1,
    message(() => fields, extensions),
  )

const OPERATION: Members = {
  tags: [1, texts],
  description: [3, text],
  operationId: [5, text],
  parameters: [6, listOf(itself(PARAMETER, 14))],
  requestBody: [7, itself(REQUEST_BODY, 4)],
  responses: [8, named(2, itself(RESPONSE, 5))],
  deprecated: [10, flag],
}
const operation: Encode = message(() => OPERATION, 13)

const PATH_ITEM: Members = {
  get: [4, operation],
  put: [5, operation],
  post: [6, operation],
  delete: [7, operation],
  patch: [10, operation],
}

const INFO: Members = { title: [1, text], version: [6, text] }

const SECURITY_SCHEME: Members = {
  type: [1, text],
  description: [2, text],
  name: [3, text],
  in: [4, text],
}

const COMPONENTS: Members = {
  schemas: [1, named(1, schema)],
  securitySchemes: [7, named(1, itself(SECURITY_SCHEME, 9))],
}

const DOCUMENT: Members = {
  openapi: [1, text],
  info: [2, message(() => INFO, 7)],
  paths: [
    4,
    named(
      1,
      message(() => PATH_ITEM, 14),
    ),
  ],
  components: [5, message(() => COMPONENTS, 10)],
}
