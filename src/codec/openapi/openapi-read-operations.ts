/** The operations of resources that can only be read. */
import {
  basePath,
  idPrefix,
  LIST,
  NAME,
  NAMESPACE,
  OBJECT_MEDIA_TYPES,
  type Operation,
  operation,
  type Parameter,
  resources,
  STREAM_MEDIA_TYPES,
  WATCH,
} from './openapi-operations.ts'

/** The operation that lists the resources of a group. */
export function groupOperations(group: string, version: string): readonly Operation[] {
  return resources(basePath(group, version), idPrefix(group, version))
}

/** The operations of one kind without namespaces. */
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

/** The options of a list of objects that are computed for it: it has no pages. */
const COMPUTED_LIST: readonly Parameter[] = LIST.filter(({ name }) =>
  ['fieldSelector', 'labelSelector', 'limit', 'resourceVersion', 'resourceVersionMatch'].includes(
    name,
  ),
)

export interface ListOnlyKind {
  readonly group: string
  readonly version: string
  readonly kind: string
  /** The resource, in small letters. */
  readonly resource: string
  /** Options besides those of every list. */
  readonly options?: readonly Parameter[]
}

/** The operations of one kind in namespaces whose objects are computed for each list. */
export function listOnlyOperations({
  group,
  version,
  kind,
  resource,
  options = [],
}: ListOnlyKind): readonly Operation[] {
  const base = basePath(group, version)
  const prefix = idPrefix(group, version)
  const parameters = [...COMPUTED_LIST, ...options]
  const list = {
    method: 'get',
    action: 'list',
    kind,
    produces: OBJECT_MEDIA_TYPES,
    responses: { 200: `${kind}List` },
  } as const
  return [
    operation({
      ...list,
      path: `${base}/${resource}`,
      id: `list${prefix}${kind}ForAllNamespaces`,
      doc: `Lists objects of kind ${kind} for all namespaces.`,
      parameters,
    }),
    operation({
      ...list,
      path: `${base}/namespaces/{namespace}/${resource}`,
      id: `list${prefix}Namespaced${kind}`,
      doc: `Lists objects of kind ${kind} for a namespace.`,
      parameters: [NAMESPACE, ...parameters],
    }),
  ]
}
