import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { accountOf, auditedUser, isMaster, type User, userMemory } from './user.ts'

describe('accountOf', () => {
  test('is the name for a user of this server', () => {
    assert.equal(accountOf({ name: 'ada' }), 'ada')
  })

  test('contains the cluster for a user of a cluster', () => {
    assert.equal(accountOf({ name: 'ada', origin: 'a' }), 'clusters/a/ada')
  })

  test('differs for different users, whatever their names are', () => {
    const name = fc.oneof(
      fc.string(),
      fc.array(fc.constantFrom('clusters', '/', 'a', 'b', '')).map((parts) => parts.join('')),
    )
    const user = fc.record(
      { name, origin: fc.constantFrom('a', 'b', 'clusters') },
      { requiredKeys: ['name'] },
    )
    fc.assert(
      fc.property(user, user, (one, other) => {
        const isSame = one.name === other.name && one.origin === other.origin
        assert.equal(accountOf(one) === accountOf(other), isSame)
      }),
    )
  })
})

describe('users of clusters', () => {
  const root: User = { name: 'root', groups: ['system:masters', 'system:authenticated'] }

  test('a user of a cluster is never a master of this server', () => {
    assert.equal(isMaster(root), true)
    assert.equal(isMaster({ ...root, origin: 'a' }), false)
  })

  test('the audit log names users of clusters and their groups with the cluster', () => {
    assert.equal(auditedUser(root), root)
    assert.deepEqual(auditedUser({ ...root, origin: 'a' }), {
      name: 'clusters/a/root',
      groups: ['clusters/a/system:masters', 'system:authenticated'],
      origin: 'a',
    })
  })
})

test('the size of a user counts bytes, not characters', () => {
  const sized = (text: string): number =>
    userMemory({ name: text, groups: [text], extra: { [text]: [text] } })
  assert.equal(sized('日本') - sized(''), 4 * 6)
})
