import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type Operation, readOutcomes } from './batch-txn.ts'
import {
  beginning,
  ChangeNumbering,
  changeIndexMax,
  firstRevisionAfter,
  formatVersion,
  isAfter,
  parseVersion,
  revisionMax,
  revisionOf,
  type Version,
  VersionSyntaxError,
  versionOfChange,
  versionOfState,
} from './resource-version.ts'
import { prepareValue } from './stored-form.ts'

const revisions = fc.integer({ min: 1, max: revisionMax })
const indexes = fc.integer({ min: 0, max: changeIndexMax })
const value = prepareValue(Buffer.from('{"metadata":{}}'))

describe('versions', () => {
  test('revision x 1000 + index, as a person reads it', () => {
    assert.equal(formatVersion(versionOfChange(12_345, 7)), '12345007')
    assert.equal(formatVersion(versionOfState(12_345)), '12345999')
  })

  test('they are ordered as revision, then index, and a state comes after all its changes', () => {
    fc.assert(
      fc.property(revisions, indexes, revisions, indexes, (r1, i1, r2, i2) => {
        const [one, two] = [versionOfChange(r1, i1), versionOfChange(r2, i2)]
        assert.equal(isAfter(two, one), r2 > r1 || (r2 === r1 && i2 > i1))
        assert.ok(isAfter(versionOfState(r1), one))
        assert.equal(isAfter(two, versionOfState(r1)), r2 > r1)
        assert.equal(revisionOf(one), r1)
        assert.ok(Number.isSafeInteger(one) && isAfter(one, beginning))
      }),
    )
  })

  test('what clients send back is what they were given', () => {
    fc.assert(
      fc.property(revisions, indexes, (revision, index) => {
        for (const version of [versionOfChange(revision, index), versionOfState(revision)]) {
          assert.equal(parseVersion(formatVersion(version)), version)
          assert.equal(parseVersion(`000${formatVersion(version)}`), version)
        }
      }),
    )
    assert.equal(parseVersion('0'), beginning)
  })

  test('any 64-bit number is a position; one beyond every revision is the last there is', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (number) => {
        const version = parseVersion(String(number))
        assert.ok(Number.isSafeInteger(version))
        assert.ok(firstRevisionAfter(version) >= 1)
        assert.ok(!isAfter(version, versionOfState(revisionMax)))
      }),
    )
    assert.equal(parseVersion('18446744073709551615'), versionOfState(revisionMax))
  })

  test('what is not a number says so', () => {
    const reasonOf = (text: string) => {
      try {
        parseVersion(text)
      } catch (error) {
        assert.ok(error instanceof VersionSyntaxError)
        assert.equal(error.text, text)
        return error.reason
      }
      return assert.fail(`${text} was taken`)
    }
    for (const text of ['', 'abc', '-1', '+1', '1.0', '1e3', ' 1', '0x10', '1_0', '１']) {
      assert.equal(reasonOf(text), 'syntax', text)
    }
    assert.equal(reasonOf('18446744073709551616'), 'range')
    assert.equal(reasonOf('9'.repeat(100)), 'range')
  })

  test('what cannot be a version is refused', () => {
    assert.throws(() => versionOfChange(1, changeIndexMax + 1), RangeError)
    assert.throws(() => versionOfChange(1, -1), RangeError)
    assert.throws(() => versionOfChange(1.5, 0), RangeError)
    assert.throws(() => versionOfState(revisionMax + 1), RangeError)
  })
})

describe('versions of the changes of a transaction', () => {
  /** Operations, each with whether etcd applied it. */
  const transactions = fc.array(
    fc.record({ isPut: fc.boolean(), applied: fc.boolean() }, { noNullPrototype: true }),
    { minLength: 2, maxLength: 100 },
  )
  type Transaction = readonly { readonly isPut: boolean; readonly applied: boolean }[]

  /** What a watcher makes of it: refused operations are not there, puts carry their place. */
  function watched(revision: number, transaction: Transaction): readonly Version[] {
    const numbering = new ChangeNumbering()
    return transaction.flatMap(({ isPut, applied }, place) => {
      if (!applied) return []
      const version = isPut ? numbering.put(revision, place) : numbering.delete(revision)
      assert.ok(version !== undefined)
      return [version]
    })
  }

  test('they rise, within the revision, whatever was refused', () => {
    fc.assert(
      fc.property(revisions, transactions, (revision, transaction) => {
        const versions = watched(revision, transaction)
        for (const [place, version] of versions.entries()) {
          assert.equal(revisionOf(version), revision)
          assert.ok(isAfter(versionOfState(revision), version))
          const before = versions[place - 1]
          if (before !== undefined) assert.ok(isAfter(version, before))
        }
      }),
    )
  })

  test('the writer gives the same versions as a watcher', () => {
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

  test('whoever resumes after any of them is owed exactly the rest', () => {
    fc.assert(
      fc.property(revisions, transactions, (revision, transaction) => {
        const versions = watched(revision, transaction)
        for (const [place, version] of versions.entries()) {
          assert.equal(firstRevisionAfter(version), revision)
          const owed = versions.filter((other) => isAfter(other, version))
          assert.deepEqual(owed, versions.slice(place + 1))
        }
        assert.equal(firstRevisionAfter(versionOfState(revision)), revision + 1)
      }),
    )
  })

  test('each revision counts from its own beginning, and none comes back', () => {
    const numbering = new ChangeNumbering()
    assert.equal(numbering.delete(5), versionOfChange(5, 0))
    assert.equal(numbering.put(5, 4), versionOfChange(5, 4))
    assert.equal(numbering.delete(5), versionOfChange(5, 5))
    assert.equal(numbering.delete(6), versionOfChange(6, 0))
    assert.throws(() => numbering.delete(5), RangeError)
  })

  test('an index that is out of order, or out of bounds, is not ours', () => {
    const numbering = new ChangeNumbering()
    assert.equal(numbering.put(5, 4), versionOfChange(5, 4))
    assert.equal(numbering.put(5, 4), undefined)
    assert.equal(numbering.put(5, changeIndexMax + 1), undefined)
    assert.equal(numbering.put(5, 6), versionOfChange(5, 6))
  })
})
