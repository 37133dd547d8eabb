import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type ClaimRules, userIn } from './oidc-token.ts'

const rules: ClaimRules = {
  usernameClaim: 'sub',
  usernamePrefix: 'oidc:',
  groupsClaim: 'groups',
  groupsPrefix: 'oidc:',
  required: new Map(),
}
const refused = { name: 'TokenRefused' }

describe('claims of an OIDC issuer', () => {
  test('claims become a user, each name with its prefix', () => {
    assert.deepEqual(userIn({ sub: 'ada', groups: ['a', 'b'], jti: 'x' }, rules), {
      name: 'oidc:ada',
      groups: ['oidc:a', 'oidc:b'],
      extra: { 'authentication.kubernetes.io/credential-id': ['JTI=x'] },
    })
  })

  test('groups may be one string, and may be missing, null or empty', () => {
    assert.deepEqual(userIn({ sub: 'ada', groups: 'a' }, rules).groups, ['oidc:a'])
    for (const groups of [undefined, null, '', []]) {
      assert.deepEqual(userIn({ sub: 'ada', groups }, rules).groups, [])
    }
    assert.deepEqual(
      userIn({ sub: 'a', groups: ['g'] }, { ...rules, groupsClaim: undefined }).groups,
      [],
    )
  })

  test('a user or group that is not a string is refused', () => {
    for (const claims of [{}, { sub: '' }, { sub: 7 as never }, { sub: 'a', groups: [7] }]) {
      assert.throws(() => userIn(claims, rules), refused)
    }
    assert.throws(() => userIn({ sub: 'a', groups: { a: 1 } }, rules), refused)
  })

  test('an inherited property of objects is not a claim', () => {
    for (const usernameClaim of ['constructor', '__proto__', 'toString']) {
      assert.throws(() => userIn({ sub: 'ada' }, { ...rules, usernameClaim }), refused)
    }
  })

  test('reserved names of Kubernetes are refused, with and without a prefix', () => {
    const bare = { ...rules, usernamePrefix: '', groupsPrefix: '' }
    assert.throws(() => userIn({ sub: 'system:admin' }, bare), refused)
    assert.throws(() => userIn({ sub: 'ada', groups: ['dev', 'system:masters'] }, bare), refused)
    assert.deepEqual(userIn({ sub: 'ada', groups: ['system:masters'] }, rules).groups, [
      'oidc:system:masters',
    ])
    for (const [prefix, name] of [
      ['system:', 'ada'],
      ['sys', 'tem:masters'],
    ] as const) {
      const begun = { ...rules, usernamePrefix: prefix }
      assert.throws(() => userIn({ sub: name }, begun), refused)
      const grouped = { ...rules, groupsPrefix: prefix }
      assert.throws(() => userIn({ sub: 'ada', groups: [name] }, grouped), refused)
    }
  })

  test('uses an email address unless email_verified is present and not true', () => {
    const byEmail = { ...rules, usernameClaim: 'email', usernamePrefix: '' }
    const email = 'ada@example.com'
    assert.equal(userIn({ email }, byEmail).name, email)
    assert.equal(userIn({ email, email_verified: true }, byEmail).name, email)
    for (const email_verified of [false, 'true', 1, null]) {
      assert.throws(() => userIn({ email, email_verified }, byEmail), refused)
    }
  })

  test('required claims must have exactly their value', () => {
    const strict = { ...rules, required: new Map([['hd', 'example.com']]) }
    assert.ok(userIn({ sub: 'ada', hd: 'example.com' }, strict))
    for (const hd of [undefined, 'else', ['example.com'], true]) {
      assert.throws(() => userIn({ sub: 'ada', hd }, strict), refused)
    }
  })
})
