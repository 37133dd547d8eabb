import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generatedDocs, isStale } from './gen-docs.ts'

for (const doc of generatedDocs) {
  test(`gen-docs: ${doc.path} is up to date with the source`, () => {
    assert.equal(isStale(doc), false, `${doc.path} is stale: run node tools/gen-docs.ts`)
  })
}
