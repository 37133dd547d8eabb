import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ObjectMeta } from '../event.ts'
import { checkFinalizersQualified, checkMeta, checkMetaUpdate } from './meta-validation.ts'
import { subdomainNames } from './names.ts'
import { Problems } from './problems.ts'

const NAME_PART =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
const VALUE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
const SUBDOMAIN =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

function texts(check: (problems: Problems) => void): readonly string[] {
  const problems = new Problems()
  check(problems)
  return problems.list().map(({ field, body }) => `${field}: ${body}`)
}

function metaTexts(change: ObjectMeta): readonly string[] {
  const meta = { name: 'a', namespace: 'shop', ...change }
  return texts((problems) => checkMeta(problems, meta, subdomainNames))
}

function updateTexts(meta: ObjectMeta, old: ObjectMeta): readonly string[] {
  return texts((problems) => checkMetaUpdate(problems, meta, old))
}

const rows: readonly (readonly [string, ObjectMeta, ...string[]])[] = [
  ['metadata with a name and a namespace is valid', {}],
  [
    'a name is required',
    { name: '' },
    'metadata.name: Required value: name or generateName is required',
  ],
  ['a namespace is required', { namespace: '' }, 'metadata.namespace: Required value'],
  [
    'an invalid generateName and the name generated from it are both reported',
    { generateName: 'Bad_', name: 'Bad_g6vxl' },
    `metadata.generateName: Invalid value: "Bad_": ${SUBDOMAIN}`,
    `metadata.name: Invalid value: "Bad_g6vxl": ${SUBDOMAIN}`,
  ],
  ['a generateName may end with a dash', { generateName: 'gen-' }],
  [
    'generation must not be negative',
    { generation: -1 },
    'metadata.generation: Invalid value: -1: must be greater than or equal to 0',
  ],
  [
    'the key of a label must be a qualified name',
    { labels: { 'bad key!': 'v' } },
    `metadata.labels: Invalid value: "bad key!": ${NAME_PART}`,
  ],
  [
    'the value of a label is validated',
    { labels: { k: 'bad value!' } },
    `metadata.labels: Invalid value: "bad value!": ${VALUE}`,
  ],
  [
    'the value of a label has a limit',
    { labels: { k: 'x'.repeat(64) } },
    `metadata.labels: Invalid value: "${'x'.repeat(64)}": must be no more than 63 bytes`,
  ],
  ['a label may be empty', { labels: { k: '' } }],
  [
    'a label must not have upper case before the slash',
    { labels: { 'Example.com/k': '' } },
    `metadata.labels: Invalid value: "Example.com/k": prefix part ${SUBDOMAIN}`,
  ],
  ['an annotation may have upper case before the slash', { annotations: { 'Example.com/K': '!' } }],
  [
    'the key of an annotation must be a qualified name',
    { annotations: { 'bad key!': 'v' } },
    `metadata.annotations: Invalid value: "bad key!": ${NAME_PART}`,
  ],
  ['annotations may fill their limit', { annotations: { big: 'x'.repeat(262_141) } }],
  [
    'annotations have a limit',
    { annotations: { big: 'x'.repeat(262_142) } },
    'metadata.annotations: Too long: may not be more than 262144 bytes',
  ],
  [
    'annotations have a total limit in bytes',
    { annotations: { a: 'é'.repeat(65_536), b: 'é'.repeat(65_536) } },
    'metadata.annotations: Too long: may not be more than 262144 bytes',
  ],
  [
    'annotations may fill their limit in bytes',
    { annotations: { a: 'é'.repeat(65_535), b: 'é'.repeat(65_536) } },
  ],
  [
    'finalizers must be qualified names',
    { finalizers: ['a/b', '!'] },
    `metadata.finalizers: Invalid value: "!": ${NAME_PART}`,
  ],
  [
    'the finalizers orphan and foregroundDeletion exclude each other',
    { finalizers: ['orphan', 'foregroundDeletion'] },
    'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set',
  ],
  [
    'problems of owners are reported after annotations and before finalizers',
    {
      labels: { '!': '' },
      annotations: { '!': '' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p' }],
      finalizers: ['!'],
    },
    `metadata.labels: Invalid value: "!": ${NAME_PART}`,
    `metadata.annotations: Invalid value: "!": ${NAME_PART}`,
    'metadata.ownerReferences[0].uid: Required value: must not be empty',
    `metadata.finalizers: Invalid value: "!": ${NAME_PART}`,
  ],
]

for (const [title, meta, ...problems] of rows) {
  test(`checkMeta: ${title}`, () => assert.deepEqual(metaTexts(meta), problems))
}

test('checkMeta: a label with a name that objects inherit is validated like any other', () => {
  const labels = JSON.parse('{"__proto__":"!","constructor":"x"}')
  assert.deepEqual(metaTexts({ labels }), [
    `metadata.labels: Invalid value: "__proto__": ${NAME_PART}`,
    `metadata.labels: Invalid value: "!": ${VALUE}`,
  ])
})

test('checkFinalizersQualified: a finalizer without a domain must be a standard one', () => {
  const finalizers = ['kubernetes', 'orphan', 'foregroundDeletion', 'example.com/x', 'unqualified']
  assert.deepEqual(
    texts((problems) => checkFinalizersQualified(problems, { finalizers })),
    [
      'metadata.finalizers[4]: Invalid value: "unqualified": name is neither a standard finalizer name nor is it fully qualified',
    ],
  )
})

const old: ObjectMeta = {
  name: 'a',
  namespace: 'shop',
  uid: 'u',
  creationTimestamp: '2026-01-02T03:04:05Z',
  generation: 7,
  finalizers: ['example.com/hold'],
}
const deleting: ObjectMeta = {
  ...old,
  deletionTimestamp: '2026-01-02T03:05:05Z',
  deletionGracePeriodSeconds: 0,
}

const updates: readonly (readonly [string, ObjectMeta, ObjectMeta, ...string[]])[] = [
  ['unchanged metadata is valid', old, old],
  [
    'name is immutable',
    { ...old, name: 'b' },
    old,
    'metadata.name: Invalid value: "b": field is immutable',
  ],
  [
    'namespace is immutable',
    { ...old, namespace: 'b' },
    old,
    'metadata.namespace: Invalid value: "b": field is immutable',
  ],
  [
    'uid is immutable',
    { ...old, uid: 'v' },
    old,
    'metadata.uid: Invalid value: "v": field is immutable',
  ],
  [
    'uid is printed as JSON',
    { ...old, uid: '\x7f' },
    old,
    'metadata.uid: Invalid value: "\x7f": field is immutable',
  ],
  [
    'creationTimestamp is immutable',
    { ...old, creationTimestamp: '2027-01-02T03:04:05Z' },
    old,
    'metadata.creationTimestamp: Invalid value: "2027-01-02T03:04:05Z": field is immutable',
  ],
  [
    'an update cannot delete a live object',
    { ...old, deletionTimestamp: '2026-01-02T03:05:05Z', deletionGracePeriodSeconds: 3 },
    old,
    'metadata.deletionTimestamp: Invalid value: "2026-01-02T03:05:05Z": field is immutable',
    'metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable',
  ],
  [
    'an update cannot undo a deletion',
    old,
    deleting,
    'metadata.deletionTimestamp: Invalid value: null: field is immutable',
    'metadata.deletionGracePeriodSeconds: Invalid value: null: field is immutable',
  ],
  [
    'generation must not decrease',
    { ...old, generation: 6 },
    old,
    'metadata.generation: Invalid value: 6: must not be decremented',
  ],
  [
    'a negative generation is a smaller one',
    { ...old, generation: -1 },
    old,
    'metadata.generation: Invalid value: -1: must not be decremented',
  ],
  ['finalizers of a live object may change', { ...old, finalizers: ['example.com/more'] }, old],
  ['finalizers may be removed during deletion', { ...deleting, finalizers: [] }, deleting],
  [
    'finalizers must not be added during deletion',
    { ...deleting, finalizers: ['example.com/hold', 'b/y', 'b/x', 'b/x'] },
    deleting,
    'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"b/x", "b/y"}',
  ],
]

for (const [title, meta, before, ...problems] of updates) {
  test(`checkMetaUpdate: ${title}`, () => assert.deepEqual(updateTexts(meta, before), problems))
}

test('checkMetaUpdate: thousands of new finalizers make a short error', () => {
  const finalizers = Array.from({ length: 20_000 }, (_, at) => `example.com/${'x'.repeat(50)}${at}`)
  const [text = ''] = updateTexts({ ...deleting, finalizers }, deleting)
  assert.ok(text.length < 5000)
})
