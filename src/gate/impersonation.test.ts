import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Request } from '../http/exchange.ts'
import { type Impersonation, impersonationOf } from './impersonation.ts'

/** Each pair is a header line of its own, as on the wire. */
function sent(...lines: readonly (readonly [string, string])[]): Request {
  const headers: Record<string, string> = Object.create(null)
  for (const [name, value] of lines) {
    const key = name.toLowerCase()
    headers[key] = headers[key] === undefined ? value : `${headers[key]}, ${value}`
  }
  return { path: '/x', headers, rawHeaders: lines.flat() } as unknown as Request
}

/** The permissions asked for, in short. */
function needsOf(impersonation: Impersonation | undefined): readonly string[] {
  return (impersonation?.needs ?? []).map(
    ({ verb, group, resource, subresource, namespace, name }) =>
      `${verb} ${group}/${resource}/${subresource} ${namespace}:${name}`,
  )
}

describe('impersonationOf', () => {
  test('a request without such headers is nobody else’s', () => {
    assert.equal(impersonationOf(sent(['Accept', '*/*'])), undefined)
    assert.equal(impersonationOf(sent(['Impersonate-User', ''])), undefined)
    assert.equal(impersonationOf(sent(['Impersonate-Nothing', 'x'])), undefined)
    assert.equal(impersonationOf(sent(['Impersonate_User', 'x'])), undefined)
  })

  test('a user, and everything that may go with one, each with its own permission', () => {
    const found = impersonationOf(
      sent(
        ['IMPERSONATE-USER', 'ada'],
        ['impersonate-Group', 'dev, ops'],
        ['Impersonate-Group', 'qa'],
        ['Impersonate-Uid', '7'],
        ['Impersonate-Extra-Example.com%2FScopes', 'a,b'],
        ['impersonate-extra-example.com%2fscopes', 'c'],
      ),
    )
    assert.deepEqual(found?.user, {
      name: 'ada',
      uid: '7',
      groups: ['dev, ops', 'qa', 'system:authenticated'],
      extra: { 'example.com/scopes': ['a,b', 'c'] },
    })
    assert.deepEqual(needsOf(found), [
      'impersonate /users/ :ada',
      'impersonate /groups/ :dev, ops',
      'impersonate /groups/ :qa',
      'impersonate authentication.k8s.io/uids/ :7',
      'impersonate authentication.k8s.io/userextras/example.com/scopes :a,b',
      'impersonate authentication.k8s.io/userextras/example.com/scopes :c',
    ])
  })

  test('a service account is one of its namespace, and in its groups unless others are named', () => {
    const name = 'system:serviceaccount:a:bot'
    const alone = impersonationOf(sent(['Impersonate-User', name]))
    assert.deepEqual(needsOf(alone), ['impersonate /serviceaccounts/ a:bot'])
    assert.deepEqual(alone?.user.groups, [
      'system:serviceaccounts',
      'system:serviceaccounts:a',
      'system:authenticated',
    ])
    const grouped = impersonationOf(sent(['Impersonate-User', name], ['Impersonate-Group', 'g']))
    assert.deepEqual(grouped?.user.groups, ['g', 'system:authenticated'])
    for (const odd of [
      'system:serviceaccount:a',
      'system:serviceaccount:a:b:c',
      'system:serviceaccount::b',
    ]) {
      assert.deepEqual(needsOf(impersonationOf(sent(['Impersonate-User', odd]))), [
        `impersonate /users/ :${odd}`,
      ])
    }
  })

  test('everybody is authenticated or not; who asks for one of the two gets that one', () => {
    const groupsOf = (user: string, ...groups: readonly string[]): readonly string[] =>
      impersonationOf(
        sent(
          ['Impersonate-User', user],
          ...groups.map((group) => ['Impersonate-Group', group] as const),
        ),
      )?.user.groups ?? []
    const out = 'system:unauthenticated'
    assert.deepEqual(groupsOf('system:anonymous'), [out])
    assert.deepEqual(groupsOf('system:anonymous', out), [out])
    assert.deepEqual(groupsOf('ada', out), [out])
    assert.deepEqual(groupsOf('ada', 'system:authenticated'), ['system:authenticated'])
  })

  test('other headers without a user are a mistake, and so are two users and too much of anything', () => {
    const refused = (pattern: RegExp, ...lines: readonly (readonly [string, string])[]): void => {
      assert.throws(
        () => impersonationOf(sent(...lines)),
        (error) =>
          String(error).match(pattern) !== null && (error as { code: number }).code === 400,
      )
    }
    refused(/without|missing/, ['Impersonate-Group', 'x'])
    refused(/missing/, ['Impersonate-Uid', 'x'])
    refused(/missing/, ['Impersonate-Extra-a', 'x'])
    refused(/more than once/, ['Impersonate-User', 'a'], ['impersonate-user', 'b'])
    refused(
      /more than 128/,
      ['Impersonate-User', 'a'],
      ...Array.from({ length: 128 }, () => ['Impersonate-Group', 'g'] as const),
    )
    refused(/longer than/, ['Impersonate-User', 'a'.repeat(1025)])
  })

  test('names that every object inherits are keys like any other', () => {
    const found = impersonationOf(
      sent(['Impersonate-User', 'a'], ['Impersonate-Extra-__proto__', 'x']),
    )
    assert.deepEqual(Object.keys(found?.user.extra ?? {}), ['__proto__'])
  })

  test('whatever a value holds, it stays one value, and each has a permission to match', () => {
    const value = fc.string({ minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(value, fc.array(value, { maxLength: 5 }), (user, groups) => {
        const found = impersonationOf(
          sent(
            ['Impersonate-User', user],
            ...groups.map((group) => ['Impersonate-Group', group] as const),
          ),
        )
        assert.equal(found?.user.name, user)
        assert.deepEqual(found.user.groups.slice(0, groups.length), groups)
        assert.deepEqual(
          found.needs.filter(({ resource }) => resource === 'groups').map(({ name }) => name),
          groups,
        )
      }),
    )
  })
})
