/** Schemas of the self reviews: requests of callers about their own identity and access. */
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
  doc: 'Standard object metadata. It is ignored.',
}

const requirementFields: readonly Field[] = [
  { ...text('key', 1, 'The label or field that the requirement applies to.'), isRequired: true },
  { ...text('operator', 2, 'One of In, NotIn, Exists and DoesNotExist.'), isRequired: true },
  texts('values', 3, 'The values for In and NotIn.'),
]

function selectorType(name: string, requirement: string): StructType {
  return new StructType(name, [
    text('rawSelector', 1, 'The selector in the syntax of a query parameter.'),
    {
      name: 'requirements',
      number: 2,
      type: { listOf: new StructType(requirement, requirementFields) },
      doc: 'The selector as a list of requirements.',
    },
  ])
}

const resourceAttributesType: StructType = new StructType('ResourceAttributes', [
  text('namespace', 1, 'Namespace of the action. Empty means all namespaces.'),
  text('verb', 2, 'The verb: get, list, watch, create, update, patch, delete, or `*` for all.'),
  text('group', 3, 'API group of the resource. Empty means core, `*` means any group.'),
  text('version', 4, 'Version of the API group. `*` means any version.'),
  text('resource', 5, 'Plural name of the resource. `*` means any resource.'),
  text('subresource', 6, 'Subresource of the resource, if any.'),
  text('name', 7, 'Name of the object. Empty means any object.'),
  {
    name: 'fieldSelector',
    number: 8,
    type: { struct: selectorType('FieldSelectorAttributes', 'FieldSelectorRequirement') },
    doc: 'Limits the request to objects with these fields. It does not change the result.',
  },
  {
    name: 'labelSelector',
    number: 9,
    type: { struct: selectorType('LabelSelectorAttributes', 'LabelSelectorRequirement') },
    doc: 'Limits the request to objects with these labels. It does not change the result.',
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
          doc: 'An action on a resource.',
        },
        {
          name: 'nonResourceAttributes',
          number: 2,
          type: {
            struct: new StructType('NonResourceAttributes', [
              text('path', 1, 'URL path of the request.'),
              text('verb', 2, 'HTTP method of the request, in lower case.'),
            ]),
          },
          doc: 'A request to a path that is not a resource.',
        },
      ]),
    },
    isRequired: true,
    doc: 'The action to check. Exactly one of its members must be set.',
  },
  {
    name: 'status',
    number: 3,
    type: {
      struct: new StructType('SubjectAccessReviewStatus', [
        { name: 'allowed', number: 1, type: 'bool', isRequired: true, doc: 'Whether allowed.' },
        { name: 'denied', number: 4, type: 'bool', doc: 'Whether an authorizer denied it.' },
        text('reason', 2, 'Explanation of the decision, if there is one.'),
        text('evaluationError', 3, 'Error that occurred during evaluation, if any.'),
      ]),
    },
    doc: 'The result. Set by the server.',
  },
])

const rulesReviewType: StructType = new StructType('SelfSubjectRulesReview', [
  metadata,
  {
    name: 'spec',
    number: 2,
    type: {
      struct: new StructType('SelfSubjectRulesReviewSpec', [
        text('namespace', 1, 'Namespace to check. Required.'),
      ]),
    },
    isRequired: true,
    doc: 'The namespace to check.',
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
              { ...texts('verbs', 1, 'Allowed verbs. `*` means all.'), isRequired: true },
              texts('apiGroups', 2, 'API groups that the rule applies to. `*` means all.'),
              texts('resources', 3, 'Resources that the rule applies to. `*` means all.'),
              texts('resourceNames', 4, 'Object names that the rule applies to. Empty means all.'),
            ]),
          },
          isRequired: true,
          doc: 'Actions on resources that are allowed.',
        },
        {
          name: 'nonResourceRules',
          number: 2,
          type: {
            listOf: new StructType('NonResourceRule', [
              { ...texts('verbs', 1, 'Allowed verbs. `*` means all.'), isRequired: true },
              texts('nonResourceURLs', 2, 'Paths of the rule. A final `*` matches any suffix.'),
            ]),
          },
          isRequired: true,
          doc: 'Requests to other paths that are allowed.',
        },
        {
          name: 'incomplete',
          number: 3,
          type: 'bool',
          isRequired: true,
          doc: 'Whether the list of rules is incomplete, so that more may be allowed.',
        },
        text('evaluationError', 4, 'Error that occurred during evaluation, if any.'),
      ]),
    },
    doc: 'The result. Set by the server.',
  },
])

/** Lists of strings, keyed by name. The server never decodes it, so it declares no fields. */
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
              text('username', 1, 'Name of the user.'),
              text('uid', 2, 'Unique ID. A later user with the same name has another.'),
              texts('groups', 3, 'Groups of the user.'),
              {
                name: 'extra',
                number: 4,
                type: { struct: userExtraType },
                doc: 'Additional information from the authenticator.',
              },
            ]),
          },
          doc: 'The user as this server authenticated it.',
        },
      ]),
    },
    doc: 'The result. Set by the server.',
  },
])

/** Keyed by API group. */
export const reviewTypes: ReadonlyMap<string, readonly StructType[]> = new Map([
  ['authentication.k8s.io', [selfReviewType]],
  ['authorization.k8s.io', [accessReviewType, rulesReviewType]],
])

/** Keyed by kind, reduced to the spec, since callers do not set the other fields. */
export const reviewSpecTypes: ReadonlyMap<string, StructType> = new Map(
  [...reviewTypes.values()].flat().map((type) => [type.name, onlySpec(type)]),
)

function onlySpec({ name, fields }: StructType): StructType {
  return new StructType(
    name,
    fields.filter((field) => field.name === 'spec'),
  )
}
