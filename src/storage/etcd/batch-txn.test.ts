import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  ChangeNumbering,
  changeIndexMax,
  firstRevisionAfter,
  isAfter,
  revisionMax,
  revisionOf,
  type Version,
  versionOfChange,
  versionOfState,
} from '../resource-version.ts'
import { prepareValue } from '../stored-form.ts'
import { type Operation, readOutcomes } from './batch-txn.ts'

const revisions = fc.integer({ min: 1, max: revisionMax })
const value = prepareValue(Buffer.from('{"metadata":{}}'))

describe('versions of the changes of a transaction', () => {
  /** Operations, and whether etcd applied each of them. */
  const transactions = fc.array(
    fc.record({ isPut: fc.boolean(), applied: fc.boolean() }, { noNullPrototype: true }),
    { minLength: 2, maxLength: 100 },
  )
  type Transaction = readonly { readonly isPut: boolean; readonly applied: boolean }[]

  /** The versions that a watcher computes: without refused operations; puts have their index. */
  function watched(revision: number, transaction: Transaction): readonly Version[] {
    const numbering = new ChangeNumbering()
    return transaction.flatMap(({ isPut, applied }, index) => {
      if (!applied) return []
      const version = isPut ? numbering.put(revision, index) : numbering.delete(revision)
      assert.ok(version !== undefined)
      return [version]
    })
  }

  test('versions increase within the revision, whatever was refused', () => {
    fc.assert(
      fc.property(revisions, transactions, (revision, transaction) => {
        const versions = watched(revision, transaction)
        for (const [index, version] of versions.entries()) {
          assert.equal(revisionOf(version), revision)
          assert.ok(isAfter(versionOfState(revision), version))
          const before = versions[index - 1]
          if (before !== undefined) assert.ok(isAfter(version, before))
        }
      }),
    )
  })

  test('the writer computes the same versions as a watcher', () => {
    fc.assert(
      fc.property(revisions, transactions, (revision, transaction) => {
        const operations = transaction.map(
          ({ isPut }): Operation => ({ key: 'k', expected: 1, value: isPut ? value : undefined }),
        )
        const results = transaction.map(({ applied }) => ({
          type: 'txn' as const,
          succeeded: applied,
          results: applied
            ? []
            : [{ type: 'range' as const, revision, kvs: [], more: false, count: 0 }],
        }))
        const outcomes = readOutcomes(operations, { revision, succeeded: true, results }, 0)
        assert.deepEqual(
          outcomes.flatMap((outcome) => (outcome.applied ? [outcome.version] : [])),
          watched(revision, transaction),
        )
      }),
    )
  })

  test('a watch resumed after any version gets exactly the later changes', () => {
    fc.assert(
      fc.property(revisions, transactions, (revision, transaction) => {
        const versions = watched(revision, transaction)
        for (const [index, version] of versions.entries()) {
          assert.equal(firstRevisionAfter(version), revision)
          const later = versions.filter((other) => isAfter(other, version))
          assert.deepEqual(later, versions.slice(index + 1))
        }
        assert.equal(firstRevisionAfter(versionOfState(revision)), revision + 1)
      }),
    )
  })

  test('each revision starts at index 0, and an older revision is an error', () => {
    const numbering = new ChangeNumbering()
    assert.equal(numbering.delete(5), versionOfChange(5, 0))
    assert.equal(numbering.put(5, 4), versionOfChange(5, 4))
    assert.equal(numbering.delete(5), versionOfChange(5, 5))
    assert.equal(numbering.delete(6), versionOfChange(6, 0))
    assert.throws(() => numbering.delete(5), RangeError)
  })

  test('an index that is out of order or out of range has no version', () => {
    const numbering = new ChangeNumbering()
    assert.equal(numbering.put(5, 4), versionOfChange(5, 4))
    assert.equal(numbering.put(5, 4), undefined)
    assert.equal(numbering.put(5, changeIndexMax + 1), undefined)
    assert.equal(numbering.put(5, 6), versionOfChange(5, 6))
  })
})
