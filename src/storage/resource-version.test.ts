import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  beginning,
  changeIndexMax,
  firstRevisionAfter,
  formatVersion,
  isAfter,
  parseVersion,
  revisionMax,
  revisionOf,
  VersionSyntaxError,
  versionOfChange,
  versionOfState,
} from './resource-version.ts'

const revisions = fc.integer({ min: 1, max: revisionMax })
const indexes = fc.integer({ min: 0, max: changeIndexMax })

describe('versions', () => {
  test('a version is revision x 1000 + index', () => {
    assert.equal(formatVersion(versionOfChange(12_345, 7)), '12345007')
    assert.equal(formatVersion(versionOfState(12_345)), '12345999')
  })

  test('versions are ordered by revision, then index, and a state comes after all its changes', () => {
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

  test('a formatted version parses to the same version', () => {
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

  test('any 64-bit number parses; one above all revisions becomes the highest version', () => {
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

  test('text that is not a 64-bit number fails with its reason', () => {
    const reasonOf = (text: string) => {
      try {
        parseVersion(text)
      } catch (error) {
        assert.ok(error instanceof VersionSyntaxError)
        assert.equal(error.text, text)
        return error.reason
      }
      return assert.fail(`${text} was accepted`)
    }
    for (const text of ['', 'abc', '-1', '+1', '1.0', '1e3', ' 1', '0x10', '1_0', '１']) {
      assert.equal(reasonOf(text), 'syntax', text)
    }
    assert.equal(reasonOf('18446744073709551616'), 'range')
    assert.equal(reasonOf('9'.repeat(100)), 'range')
  })

  test('revisions and indexes out of range are refused', () => {
    assert.throws(() => versionOfChange(1, changeIndexMax + 1), RangeError)
    assert.throws(() => versionOfChange(1, -1), RangeError)
    assert.throws(() => versionOfChange(1.5, 0), RangeError)
    assert.throws(() => versionOfState(revisionMax + 1), RangeError)
  })
})
