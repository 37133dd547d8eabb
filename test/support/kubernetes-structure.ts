/**
 * Checks objects against the types of Kubernetes 1.36 that the client library has: names and types of
 * all fields, as a server's strict field validation would. Not checked: which fields are required, and
 * rules between fields; for those, a real API server is needed.
 */
import * as models from '@kubernetes/client-node'

interface Attribute {
  readonly baseName: string
  readonly type: string
}

interface Model {
  getAttributeTypeMap(): readonly Attribute[]
}

const MODELS: Readonly<Record<string, string>> = {
  'apps/v1': 'V1',
  v1: 'V1',
  'policy/v1': 'V1',
  'networking.k8s.io/v1': 'V1',
  'rbac.authorization.k8s.io/v1': 'V1',
}
const ARRAY = /^Array<(.+)>$/
const MAP = /^\{ \[key: string\]: (.+?);? \}$/
const SCALARS: Readonly<Record<string, readonly string[]>> = {
  string: ['string'],
  number: ['number'],
  boolean: ['boolean'],
  IntOrString: ['number', 'string'],
}

/** Whether the library has the type of this object. It has none of custom resources. */
export function isKnownKind({ apiVersion }: { readonly apiVersion: string }): boolean {
  return MODELS[apiVersion] !== undefined
}

/** What is wrong, with the path of the field. */
export function structureProblems(object: {
  readonly apiVersion: string
  readonly kind: string
}): readonly string[] {
  return problemsOf(object, `${MODELS[object.apiVersion]}${object.kind}`, object.kind)
}

function problemsOf(value: unknown, type: string, path: string): readonly string[] {
  if (value === null) return [`${path} is null`]
  const scalars = SCALARS[type]
  if (scalars !== undefined) {
    return scalars.includes(typeof value) ? [] : [`${path} is a ${typeof value}, not a ${type}`]
  }
  if (type === 'any') return []
  const [, item] = ARRAY.exec(type) ?? []
  if (item !== undefined) {
    if (!Array.isArray(value)) return [`${path} is not a list`]
    return value.flatMap((each, at) => problemsOf(each, item, `${path}[${at}]`))
  }
  if (typeof value !== 'object' || Array.isArray(value)) return [`${path} is not an object`]
  const [, member] = MAP.exec(type) ?? []
  return Object.entries(value).flatMap(([name, each]) => {
    const field = member ?? modelOf(type, path).find(({ baseName }) => baseName === name)?.type
    const at = `${path}.${name}`
    return field === undefined ? [`${at} is no field of ${type}`] : problemsOf(each, field, at)
  })
}

function modelOf(type: string, path: string): readonly Attribute[] {
  const model = (models as unknown as Readonly<Record<string, Model | undefined>>)[type]
  if (model === undefined) throw new Error(`${path}: the client library has no type ${type}`)
  return model.getAttributeTypeMap()
}
