/** The operations of resources without namespaces that can only be read. */
import {
  basePath,
  idPrefix,
  LIST,
  NAME,
  OBJECT_MEDIA_TYPES,
  type Operation,
  operation,
  resources,
  STREAM_MEDIA_TYPES,
  WATCH,
} from './openapi-operations.ts'

/** All operations of a group that has this one kind. */
export function groupOperations(
  group: string,
  version: string,
  kind: string,
): readonly Operation[] {
  const base = basePath(group, version)
  return [...resources(base, idPrefix(group, version)), ...readOperations(group, version, kind)]
}

/** The operations of one kind. */
export function readOperations(group: string, version: string, kind: string): readonly Operation[] {
  const path = `${basePath(group, version)}/${kind.toLowerCase()}s`
  const prefix = idPrefix(group, version)
  return [
    operation({
      path,
      method: 'get',
      action: 'list',
      kind,
      id: `list${prefix}${kind}`,
      doc: `Lists or watches objects of kind ${kind}.`,
      parameters: [...LIST, WATCH],
      produces: [...OBJECT_MEDIA_TYPES, ...STREAM_MEDIA_TYPES],
      responses: { 200: `${kind}List` },
    }),
    operation({
      path: `${path}/{name}`,
      method: 'get',
      action: 'get',
      kind,
      id: `read${prefix}${kind}`,
      doc: `Reads an object of kind ${kind}.`,
      parameters: [NAME],
      responses: { 200: kind },
    }),
  ]
}
