/**
 * The objects of the API as OpenAPI describes them: by the one table of what an event looks like,
 * under the names that Kubernetes gave them.
 */
import {
  atomicTypes,
  type Field,
  type FieldType,
  type ScalarKind,
  type StructType,
} from '../api/schema.ts'
import type { JsonObject } from '../lib/json.ts'
import { deleteOptionsType, documentTypes, statusType } from './meta-types.ts'
import type { OpenApiGroup } from './openapi-groups.ts'
import { userExtraType } from './review-types.ts'

/** Version 3 refers to a schema beside other things by a list of one, version 2 by the bare name. */
export type OpenApiVersion = 'v2' | 'v3'

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1'
const CORE = 'io.k8s.api.core.v1'

/** What a reader is told about a kind of object, by the package that it is in. */
const META_ABOUT: Readonly<Record<string, string>> = {
  ObjectMeta: 'What every object has: its name, its labels, and what the server notes about it.',
  OwnerReference: 'An object in the same namespace that this one depends on.',
  ManagedFieldsEntry: 'The fields that one client manages.',
  ListMeta: 'Which state a list is of, and how to get the rest of it.',
  Status: 'How a request ended.',
  StatusDetails: 'What the end of a request was about.',
  StatusCause: 'One of the things that were wrong.',
  DeleteOptions: 'How something is to be deleted.',
  Preconditions: 'What must be so for anything to happen.',
  APIResourceList: 'The resources of a group in one version.',
  APIResource: 'A resource: its names, and what can be done with it.',
  FieldSelectorRequirement: 'What a field must be like.',
  LabelSelectorRequirement: 'What a label must be like.',
}

const CORE_ABOUT: Readonly<Record<string, string>> = {
  EventSource: 'Who reported an event, in the older form.',
  ObjectReference: 'Which object is meant.',
}

/** Those of a group of its own. */
const GROUP_ABOUT: Readonly<Record<string, string>> = {
  Event: 'Something that happened to an object, reported once or as a series. Kept for a while.',
  EventList: 'Events, and the state they are of.',
  EventSeries: 'How often and until when an event was seen, if that was more than once.',
  SelfSubjectReview: 'Asks who you are. `kubectl auth whoami` does.',
  SelfSubjectReviewStatus: 'Who you are.',
  UserInfo: 'A user, as whoever vouched for it described it.',
  SelfSubjectAccessReview: 'Asks whether you may do something. `kubectl auth can-i` does.',
  SelfSubjectAccessReviewSpec: 'What you would do: to a resource, or to another path.',
  ResourceAttributes: 'Something done to a resource.',
  FieldSelectorAttributes: 'A selector of fields, in one of two forms.',
  LabelSelectorAttributes: 'A selector of labels, in one of two forms.',
  NonResourceAttributes: 'A request to a path that is no resource.',
  SubjectAccessReviewStatus: 'Whether you may.',
  SelfSubjectRulesReview: 'Asks what you may do. `kubectl auth can-i --list` does.',
  SelfSubjectRulesReviewSpec: 'Where.',
  SubjectRulesReviewStatus: 'What you may do, rule by rule.',
  ResourceRule: 'A rule about resources.',
  NonResourceRule: 'A rule about paths that are no resources.',
}

/** What is not made of fields. */
const PLAIN: Readonly<Record<string, JsonObject>> = {
  Time: { type: 'string', format: 'date-time', description: 'A time in RFC 3339, to the second.' },
  MicroTime: {
    type: 'string',
    format: 'date-time',
    description: 'A time in RFC 3339, to the microsecond.',
  },
  FieldsV1: { type: 'object', description: 'Fields as a tree of their names.' },
  Patch: { type: 'object', description: 'A change, in one of the forms of a patch.' },
  WatchEvent: {
    type: 'object',
    description: 'What happened to an object, and the object.',
    required: ['type', 'object'],
    properties: {
      object: { type: 'object', description: 'The object after it, or a Status.' },
      type: { type: 'string', description: 'ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.' },
    },
  },
  Verbs: { type: 'array', items: { type: 'string' }, description: 'What can be done.' },
}

const SCALARS: Readonly<Record<Exclude<ScalarKind, 'time' | 'microTime' | 'raw'>, JsonObject>> = {
  string: { type: 'string' },
  bool: { type: 'boolean' },
  int32: { type: 'integer', format: 'int32' },
  int64: { type: 'integer', format: 'int64' },
}

const BARE_KIND: JsonObject = {
  kind: { type: 'string', description: 'What kind of object this is.' },
  apiVersion: { type: 'string', description: 'Group and version in which it is written.' },
}

/** Parts that are told where they stand, without a name. */
const UNNAMED: ReadonlyMap<StructType, JsonObject> = new Map([
  [
    userExtraType,
    { type: 'object', additionalProperties: { type: 'array', items: { type: 'string' } } },
  ],
])

/** The schemas of a group: everything its requests and answers are made of. */
export class OpenApiSchemas {
  readonly #group: OpenApiGroup
  readonly #version: OpenApiVersion
  readonly #found = new Map<string, JsonObject>()

  constructor(group: OpenApiGroup, version: OpenApiVersion) {
    this.#group = group
    this.#version = version
  }

  /** A reference to the schema of that name, which is in `all` from then on. */
  ref(name: string): JsonObject {
    const type = this.#roots().find((root) => root.name === name)
    return type === undefined ? this.#plainRef(name) : this.#structRef(type)
  }

  /** Those that were referred to, with all that they refer to, by name. */
  all(): JsonObject {
    return sorted(Object.fromEntries(this.#found))
  }

  /** Objects that can stand alone, and so say what they are. */
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
    if (schema === undefined) throw new Error(`there is no schema ${name}`)
    const fullName = `${META}.${name}`
    this.#found.set(fullName, schema)
    return this.#refTo(fullName)
  }

  #refTo(fullName: string): JsonObject {
    const place = this.#version === 'v3' ? '#/components/schemas' : '#/definitions'
    return { $ref: `${place}/${fullName}` }
  }

  #packageOf(name: string): string {
    if (name in CORE_ABOUT) return CORE
    return name in META_ABOUT ? META : packageOf(this.#group.name)
  }

  #struct(type: StructType): JsonObject {
    const kinds = this.#kindsOf(type)
    const properties: JsonObject = kinds.length > 0 ? { ...BARE_KIND } : {}
    for (const field of type.fields) properties[field.name] = this.#property(field)
    const required = type.fields.filter(({ isRequired }) => isRequired).map(({ name }) => name)
    return {
      ...described(aboutOf(type.name)),
      type: 'object',
      ...(required.length > 0 ? { required } : {}),
      properties: sorted(properties),
      ...(atomicTypes.has(type) ? { 'x-kubernetes-map-type': 'atomic' } : {}),
      ...(kinds.length > 0 ? { 'x-kubernetes-group-version-kind': kinds } : {}),
    }
  }

  /** Under which kinds an object is known; none for what is only part of another. */
  #kindsOf(type: StructType): JsonObject[] {
    const { name: group, kinds } = this.#group
    const { name: kind } = type
    const ofGroup = { group, version: 'v1', kind }
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

  /** In protobuf a list of verbs is a message of its own; in JSON it is a list. */
  #partRef(type: StructType): JsonObject {
    const unnamed = UNNAMED.get(type)
    if (unnamed !== undefined) return unnamed
    return type.name in PLAIN ? this.#plainRef(type.name) : this.#structRef(type)
  }
}

/** The package that Kubernetes has the group in; for another group its name, turned around. */
function packageOf(group: string): string {
  if (group === '') return CORE
  const [, known] = /^(events|authentication|authorization)\.k8s\.io$/.exec(group) ?? []
  if (known !== undefined) return `io.k8s.api.${known}.v1`
  return [...group.split('.').reverse(), 'v1'].join('.')
}

function aboutOf(name: string): string {
  return META_ABOUT[name] ?? CORE_ABOUT[name] ?? GROUP_ABOUT[name] ?? ''
}

function described(doc: string): JsonObject {
  return doc === '' ? {} : { description: doc }
}

/** How lists are merged by who patches or applies. */
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
