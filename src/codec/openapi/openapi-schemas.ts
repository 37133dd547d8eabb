/**
 * The OpenAPI schemas of the API objects. They are generated from the schema tables, and have the
 * names that Kubernetes gives them.
 */
import {
  atomicTypes,
  type Field,
  type FieldType,
  type ScalarKind,
  type StructType,
} from '../../api/schema.ts'
import type { JsonObject } from '../../lib/json.ts'
import { userExtraType } from '../review-types.ts'
import { deleteOptionsType, documentTypes, statusType } from '../struct/meta-types.ts'
import type { OpenApiGroup } from './openapi-groups.ts'

/** Version 3 wraps a reference with siblings into a list of one (`allOf`); version 2 does not. */
export type OpenApiVersion = 'v2' | 'v3'

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1'
const CORE = 'io.k8s.api.core.v1'

const META_DESCRIPTIONS: Readonly<Record<string, string>> = {
  ObjectMeta: 'Metadata of every object: its name, its labels, and fields that the server sets.',
  OwnerReference: 'An object in the same namespace that owns this one.',
  ManagedFieldsEntry: 'The fields that one client manages, and when it last changed them.',
  ListMeta: 'The version of a list, and the token for its next page.',
  ShardInfo: 'The shard that a list contains.',
  Status: 'The result of a request.',
  StatusDetails: 'The object and the errors that a status refers to.',
  StatusCause: 'One of the errors of a request.',
  DeleteOptions: 'Options of a delete.',
  Preconditions: 'Conditions that must hold for the request to be executed.',
  APIResourceList: 'The resources of a group and version.',
  APIResource: 'A resource: its names and supported verbs.',
  FieldSelectorRequirement: 'A condition on a field.',
  LabelSelectorRequirement: 'A condition on a label.',
}

const CORE_DESCRIPTIONS: Readonly<Record<string, string>> = {
  EventSource: 'The component that reported an event of core/v1.',
  ObjectReference: 'A reference to an object.',
}

/** Kinds in the package of their own group. */
const GROUP_DESCRIPTIONS: Readonly<Record<string, string>> = {
  Event: 'A report of something that happened to an object, once or as a series. Events expire.',
  EventList: 'A list of events.',
  Namespace: 'A namespace that has events.',
  NamespaceList: 'A list of namespaces.',
  NamespaceSpec: 'The desired state of a namespace: nothing.',
  NamespaceStatus: 'The state of a namespace.',
  Cluster: 'A cluster whose events are stored here. See `kubectl get clusters`.',
  ClusterList: 'A list of clusters.',
  ClusterStatus: 'What is stored of a cluster.',
  ClusterMirror: 'The state of the mirror of a cluster.',
  EventSeries: 'Count and last time of an event that was observed more than once.',
  SelfSubjectReview: 'Returns the identity of the caller. See `kubectl auth whoami`.',
  SelfSubjectReviewStatus: 'The identity of the caller.',
  UserInfo: 'A user as the authenticator identified it.',
  SelfSubjectAccessReview: 'Checks whether the caller may do something. See `kubectl auth can-i`.',
  SelfSubjectAccessReviewSpec: 'The action to check: on a resource, or on another path.',
  ResourceAttributes: 'An action on a resource.',
  FieldSelectorAttributes: 'A field selector, as text or as requirements.',
  LabelSelectorAttributes: 'A label selector, as text or as requirements.',
  NonResourceAttributes: 'A request to a path that is not a resource.',
  SubjectAccessReviewStatus: 'Whether the action is allowed.',
  SelfSubjectRulesReview: 'Lists what the caller may do. See `kubectl auth can-i --list`.',
  SelfSubjectRulesReviewSpec: 'The namespace to check.',
  SubjectRulesReviewStatus: 'The actions that are allowed, as rules.',
  ResourceRule: 'A rule for resources.',
  NonResourceRule: 'A rule for paths that are not resources.',
}

/** Schemas that are not generated from fields. */
const PLAIN: Readonly<Record<string, JsonObject>> = {
  Time: { type: 'string', format: 'date-time', description: 'A time in RFC 3339, with seconds.' },
  MicroTime: {
    type: 'string',
    format: 'date-time',
    description: 'A time in RFC 3339, with microseconds.',
  },
  FieldsV1: { type: 'object', description: 'A set of fields, as a tree of names.' },
  Patch: { type: 'object', description: 'A patch in one of the supported formats.' },
  WatchEvent: {
    type: 'object',
    description: 'A change of an object.',
    required: ['type', 'object'],
    properties: {
      object: { type: 'object', description: 'The object after the change, or a Status.' },
      type: { type: 'string', description: 'ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.' },
    },
  },
  Verbs: { type: 'array', items: { type: 'string' }, description: 'The supported verbs.' },
}

const SCALARS: Readonly<Record<Exclude<ScalarKind, 'time' | 'microTime' | 'raw'>, JsonObject>> = {
  string: { type: 'string' },
  bool: { type: 'boolean' },
  int32: { type: 'integer', format: 'int32' },
  int64: { type: 'integer', format: 'int64' },
}

const BARE_KIND: JsonObject = {
  kind: { type: 'string', description: 'Kind of the object.' },
  apiVersion: { type: 'string', description: 'API group and version of the object.' },
}

/** Schemas that are inlined, since they have no name. */
const INLINED: ReadonlyMap<StructType, JsonObject> = new Map([
  [
    userExtraType,
    { type: 'object', additionalProperties: { type: 'array', items: { type: 'string' } } },
  ],
])

/** The schemas of a group: all types of its requests and responses. */
export class OpenApiSchemas {
  readonly #group: OpenApiGroup
  readonly #version: OpenApiVersion
  readonly #found = new Map<string, JsonObject>()

  constructor(group: OpenApiGroup, version: OpenApiVersion) {
    this.#group = group
    this.#version = version
  }

  /** Returns a reference to the schema of this name, and includes it in `all`. */
  ref(name: string): JsonObject {
    const type = this.#roots().find((root) => root.name === name)
    return type === undefined ? this.#plainRef(name) : this.#structRef(type)
  }

  /** The schemas that were referenced, directly or indirectly, keyed by name. */
  all(): JsonObject {
    return sorted(Object.fromEntries(this.#found))
  }

  /** Top-level objects, which have a kind and an apiVersion. */
  #roots(): readonly StructType[] {
    return [...this.#group.kinds, statusType, deleteOptionsType, ...documentTypes.values()]
  }

  #structRef(type: StructType): JsonObject {
    const fullName = `${this.#packageOf(type.name)}.${type.name}`
    if (!this.#found.has(fullName)) {
      this.#found.set(fullName, {})
      this.#found.set(fullName, this.#struct(type))
    }
    return this.#refTo(fullName)
  }

  #plainRef(name: string): JsonObject {
    const schema = PLAIN[name]
    if (schema === undefined) throw new Error(`no schema is named ${name}`)
    const fullName = `${META}.${name}`
    this.#found.set(fullName, schema)
    return this.#refTo(fullName)
  }

  #refTo(fullName: string): JsonObject {
    const place = this.#version === 'v3' ? '#/components/schemas' : '#/definitions'
    return { $ref: `${place}/${fullName}` }
  }

  #packageOf(name: string): string {
    if (name in CORE_DESCRIPTIONS) return CORE
    return name in META_DESCRIPTIONS ? META : packageOf(this.#group)
  }

  #struct(type: StructType): JsonObject {
    const kinds = this.#kindsOf(type)
    const properties: JsonObject = kinds.length > 0 ? { ...BARE_KIND } : {}
    for (const field of type.fields) properties[field.name] = this.#property(field)
    const required = type.fields.filter(({ isRequired }) => isRequired).map(({ name }) => name)
    return {
      ...described(descriptionOf(type.name)),
      type: 'object',
      ...(required.length > 0 ? { required } : {}),
      properties: sorted(properties),
      ...(atomicTypes.has(type) ? { 'x-kubernetes-map-type': 'atomic' } : {}),
      ...(kinds.length > 0 ? { 'x-kubernetes-group-version-kind': kinds } : {}),
    }
  }

  /** Returns group, version and kind of a top-level object, and none for a part of another one. */
  #kindsOf(type: StructType): JsonObject[] {
    const { name: group, version, kinds } = this.#group
    const { name: kind } = type
    const ofGroup = { group, version, kind }
    if (kinds.includes(type)) return [ofGroup]
    switch (kind) {
      case 'DeleteOptions':
        return group === '' ? [ofGroup] : [{ group: '', version: 'v1', kind }, ofGroup]
      case 'Status':
      case 'APIResourceList':
        return [{ group: '', version: 'v1', kind }]
      default:
        return []
    }
  }

  #property({ type, doc, mergeBy }: Field): JsonObject {
    const schema = this.#schema(type)
    const shown = '$ref' in schema && this.#version === 'v3' ? { allOf: [schema] } : schema
    return { ...shown, ...described(doc), ...listRules(type, mergeBy) }
  }

  #schema(type: FieldType): JsonObject {
    if (type === 'time') return this.ref('Time')
    if (type === 'microTime') return this.ref('MicroTime')
    if (type === 'raw') return this.ref('FieldsV1')
    if (type === 'stringMap') {
      return { type: 'object', additionalProperties: { type: 'string' } }
    }
    if (typeof type === 'string') return SCALARS[type]
    if ('struct' in type) return this.#partRef(type.struct)
    const items = type.listOf === 'string' ? SCALARS.string : this.#partRef(type.listOf)
    return { type: 'array', items }
  }

  /** Verbs are a message in protobuf, but a plain list in JSON and in the schema. */
  #partRef(type: StructType): JsonObject {
    const inlined = INLINED.get(type)
    if (inlined !== undefined) return inlined
    return type.name in PLAIN ? this.#plainRef(type.name) : this.#structRef(type)
  }
}

/** The Kubernetes package of the group. For another group, its name in reverse order. */
function packageOf({ name: group, version }: OpenApiGroup): string {
  if (group === '') return CORE
  const [, known] = /^(events|authentication|authorization)\.k8s\.io$/.exec(group) ?? []
  if (known !== undefined) return `io.k8s.api.${known}.v1`
  return [...group.split('.').reverse(), version].join('.')
}

function descriptionOf(name: string): string {
  return META_DESCRIPTIONS[name] ?? CORE_DESCRIPTIONS[name] ?? GROUP_DESCRIPTIONS[name] ?? ''
}

function described(doc: string): JsonObject {
  return doc === '' ? {} : { description: doc }
}

/** Describes how a patch or an apply merges lists. */
function listRules(type: FieldType, mergeBy: string | undefined): JsonObject {
  if (typeof type === 'string' || !('listOf' in type)) return {}
  if (mergeBy === undefined) return { 'x-kubernetes-list-type': 'atomic' }
  if (type.listOf === 'string') {
    return { 'x-kubernetes-list-type': 'set', 'x-kubernetes-patch-strategy': 'merge' }
  }
  return {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': [mergeBy],
    'x-kubernetes-patch-strategy': 'merge',
    'x-kubernetes-patch-merge-key': mergeBy,
  }
}

function sorted(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).sort(([one], [other]) => (one < other ? -1 : 1)))
}
