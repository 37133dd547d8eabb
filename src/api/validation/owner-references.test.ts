import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OwnerReference } from '../event.ts'
import { checkOwnerReferences, dedupOwnerReferences } from './owner-references.ts'
import { Problems } from './problems.ts'

const pod: OwnerReference = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u1' }

function problemsOf(...references: OwnerReference[]): readonly string[] {
  const problems = new Problems()
  checkOwnerReferences(problems, references)
  return problems.list().map(({ field, body }) => `${field}: ${body}`)
}

const apiVersions: readonly (readonly [string, boolean])[] = [
  ['v1', true],
  ['apps/v1', true],
  ['/v1', true],
  ['/', false],
  ['apps/', false],
  ['a/b/c', false],
]

for (const [apiVersion, isValid] of apiVersions) {
  const verdict = isValid ? 'contains a version' : 'contains no version'
  test(`checkOwnerReferences: ${JSON.stringify(apiVersion)} ${verdict}`, () => {
    const problem = `metadata.ownerReferences[1].apiVersion: Invalid value: "${apiVersion}": must be <group>/<version> or <version>`
    assert.deepEqual(problemsOf(pod, { ...pod, apiVersion }), isValid ? [] : [problem])
  })
}

test('checkOwnerReferences requires every name', () => {
  assert.deepEqual(problemsOf({}), [
    'metadata.ownerReferences[0].apiVersion: Required value: must not be empty',
    'metadata.ownerReferences[0].kind: Required value: must not be empty',
    'metadata.ownerReferences[0].name: Required value: must not be empty',
    'metadata.ownerReferences[0].uid: Required value: must not be empty',
  ])
})

test('checkOwnerReferences rejects a core/v1 Event as an owner', () => {
  assert.deepEqual(problemsOf({ uid: 'u1', name: 'p', kind: 'Event', apiVersion: 'v1' }), [
    'metadata.ownerReferences[0]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"p","uid":"u1"}: /v1, Kind=Event is disallowed from being an owner',
  ])
  assert.deepEqual(problemsOf({ ...pod, kind: 'Event', apiVersion: 'events.k8s.io/v1' }), [])
})

test('checkOwnerReferences accepts only one controller', () => {
  const one = { ...pod, controller: true }
  const two = { ...pod, name: 'q', uid: 'u2', controller: true }
  assert.deepEqual(problemsOf(one, { ...two, controller: false }), [])
  assert.deepEqual(problemsOf(one, two), [
    'metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u1","controller":true},{"apiVersion":"v1","kind":"Pod","name":"q","uid":"u2","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for Pod/p and Pod/q',
  ])
})

test('checkOwnerReferences limits the size of the error for thousands of controllers', () => {
  const references = Array.from({ length: 20_000 }, (_, at) => ({
    ...pod,
    name: 'p'.repeat(100),
    uid: `u${at}`,
    controller: true,
  }))
  assert.ok(problemsOf(...references).join('').length < 100_000)
})

test('dedupOwnerReferences keeps one of equal references, and warns', () => {
  const { meta, warning } = dedupOwnerReferences({
    name: 'e',
    ownerReferences: [pod, { ...pod, name: 'q' }, { ...pod }, { ...pod, uid: 'u2' }, pod],
  })
  assert.deepEqual(meta, {
    name: 'e',
    ownerReferences: [pod, { ...pod, name: 'q' }, { ...pod, uid: 'u2' }],
  })
  assert.equal(
    warning,
    '.metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u1, u1',
  )
})

const different: readonly (readonly [string, OwnerReference])[] = [
  ['a false flag', { ...pod, controller: false }],
  ['another flag', { ...pod, blockOwnerDeletion: true }],
  ['another version', { ...pod, apiVersion: 'v2' }],
  ['another kind', { ...pod, kind: 'Node' }],
  ['another kind and name with the same concatenation', { ...pod, kind: 'Po', name: 'dp' }],
]

for (const [subject, reference] of different) {
  test(`dedupOwnerReferences: ${subject} makes a reference different`, () => {
    const meta = { ownerReferences: [pod, reference] }
    assert.deepEqual(dedupOwnerReferences(meta), { meta })
  })
}

test('dedupOwnerReferences returns metadata without owners unchanged', () => {
  const meta = { name: 'e' }
  assert.equal(dedupOwnerReferences(meta).meta, meta)
})

test('dedupOwnerReferences returns a short warning for any number of duplicates', () => {
  const references = Array.from({ length: 5000 }, () => pod)
  const { meta, warning = '' } = dedupOwnerReferences({ ownerReferences: references })
  assert.equal(meta.ownerReferences?.length, 1)
  assert.ok(warning.length < 5000)
})
