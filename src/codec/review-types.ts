/** What callers ask about themselves, and how it is answered, as tables. */
import { type Field, objectMetaType, StructType } from '../api/schema.ts'

const text = (name: string, number: number, doc: string): Field => ({
  name,
  number,
  type: 'string',
  doc,
})

const texts = (name: string, number: number, doc: string): Field => ({
  name,
  number,
  type: { listOf: 'string' },
  doc,
})

const metadata: Field = {
  name: 'metadata',
  number: 1,
  type: { struct: objectMetaType },
  whenUnset: '{}',
  doc: 'Like that of any object; nothing in it matters.',
}

const requirementFields: readonly Field[] = [
  { ...text('key', 1, 'What it is about.'), isRequired: true },
  { ...text('operator', 2, 'In, NotIn, Exists or DoesNotExist.'), isRequired: true },
  texts('values', 3, 'For In and NotIn: which values.'),
]

function selectorType(name: string, requirement: string): StructType {
  return new StructType(name, [
    text('rawSelector', 1, 'The selector as it stands in a query.'),
    {
      name: 'requirements',
      number: 2,
      type: { listOf: new StructType(requirement, requirementFields) },
      doc: 'The selector in its parts.',
    },
  ])
}

const resourceAttributesType: StructType = new StructType('ResourceAttributes', [
  text('namespace', 1, 'Where; empty means in all namespaces.'),
  text('verb', 2, 'What is done: get, list, watch, create, update, patch, delete, or `*` for all.'),
  text('group', 3, 'API group of the resource; empty is core, `*` is any.'),
  text('version', 4, 'Version of the group; `*` is any.'),
  text('resource', 5, 'The resource, plural; `*` is any.'),
  text('subresource', 6, 'A subresource of it, if that is meant.'),
  text('name', 7, 'One object; empty means any.'),
  {
    name: 'fieldSelector',
    number: 8,
    type: { struct: selectorType('FieldSelectorAttributes', 'FieldSelectorRequirement') },
    doc: 'Only objects with such fields. Makes no difference to the answer.',
  },
  {
    name: 'labelSelector',
    number: 9,
    type: { struct: selectorType('LabelSelectorAttributes', 'LabelSelectorRequirement') },
    doc: 'Only objects with such labels. Makes no difference to the answer.',
  },
])

const accessReviewType: StructType = new StructType('SelfSubjectAccessReview', [
  metadata,
  {
    name: 'spec',
    number: 2,
    type: {
      struct: new StructType('SelfSubjectAccessReviewSpec', [
        {
          name: 'resourceAttributes',
          number: 1,
          type: { struct: resourceAttributesType },
          doc: 'Something done to a resource.',
        },
        {
          name: 'nonResourceAttributes',
          number: 2,
          type: {
            struct: new StructType('NonResourceAttributes', [
              text('path', 1, 'The path.'),
              text('verb', 2, 'The method, in small letters.'),
            ]),
          },
          doc: 'Or a request to a path that is no resource.',
        },
      ]),
    },
    isRequired: true,
    doc: 'What is asked: one of the two.',
  },
  {
    name: 'status',
    number: 3,
    type: {
      struct: new StructType('SubjectAccessReviewStatus', [
        { name: 'allowed', number: 1, type: 'bool', isRequired: true, doc: 'Whether you may.' },
        { name: 'denied', number: 4, type: 'bool', doc: 'Whether somebody forbade it outright.' },
        text('reason', 2, 'Why, if there is more to say.'),
        text('evaluationError', 3, 'What went wrong while finding out.'),
      ]),
    },
    doc: 'The answer.',
  },
])

const rulesReviewType: StructType = new StructType('SelfSubjectRulesReview', [
  metadata,
  {
    name: 'spec',
    number: 2,
    type: {
      struct: new StructType('SelfSubjectRulesReviewSpec', [
        text('namespace', 1, 'The namespace; it must be named.'),
      ]),
    },
    isRequired: true,
    doc: 'Where it is asked about.',
  },
  {
    name: 'status',
    number: 3,
    type: {
      struct: new StructType('SubjectRulesReviewStatus', [
        {
          name: 'resourceRules',
          number: 1,
          type: {
            listOf: new StructType('ResourceRule', [
              { ...texts('verbs', 1, 'What you may do; `*` is all.'), isRequired: true },
              texts('apiGroups', 2, 'In which groups; `*` is all.'),
              texts('resources', 3, 'To which resources; `*` is all.'),
              texts('resourceNames', 4, 'To which objects; to all when there are none here.'),
            ]),
          },
          isRequired: true,
          doc: 'What you may do to resources.',
        },
        {
          name: 'nonResourceRules',
          number: 2,
          type: {
            listOf: new StructType('NonResourceRule', [
              { ...texts('verbs', 1, 'What you may do; `*` is all.'), isRequired: true },
              texts('nonResourceURLs', 2, 'To which paths; a `*` at the end is any ending.'),
            ]),
          },
          isRequired: true,
          doc: 'Which other paths you may ask for.',
        },
        {
          name: 'incomplete',
          number: 3,
          type: 'bool',
          isRequired: true,
          doc: 'Whether you may do more than these rules say.',
        },
        text('evaluationError', 4, 'What went wrong while finding out.'),
      ]),
    },
    doc: 'The answer.',
  },
])

/** Texts by name, several each: nothing that is read here, so it has no fields. */
export const userExtraType: StructType = new StructType('UserExtra', [])

const selfReviewType: StructType = new StructType('SelfSubjectReview', [
  metadata,
  {
    name: 'status',
    number: 2,
    type: {
      struct: new StructType('SelfSubjectReviewStatus', [
        {
          name: 'userInfo',
          number: 1,
          type: {
            struct: new StructType('UserInfo', [
              text('username', 1, 'Your name.'),
              text('uid', 2, 'Tells you from others who had that name before or after.'),
              texts('groups', 3, 'The groups you are in.'),
              {
                name: 'extra',
                number: 4,
                type: { struct: userExtraType },
                doc: 'What else whoever vouched for you said.',
              },
            ]),
          },
          doc: 'Who you are, as this server sees you.',
        },
      ]),
    },
    doc: 'The answer.',
  },
])

/** Reviews of oneself, by the group they are in. */
export const reviewTypes: ReadonlyMap<string, readonly StructType[]> = new Map([
  ['authentication.k8s.io', [selfReviewType]],
  ['authorization.k8s.io', [accessReviewType, rulesReviewType]],
])

/** By kind, each reduced to what is asked in it; the rest is nothing that a caller has to say. */
export const askedTypes: ReadonlyMap<string, StructType> = new Map(
  [...reviewTypes.values()].flat().map((type) => [type.name, onlySpec(type)]),
)

function onlySpec({ name, fields }: StructType): StructType {
  return new StructType(
    name,
    fields.filter((field) => field.name === 'spec'),
  )
}
