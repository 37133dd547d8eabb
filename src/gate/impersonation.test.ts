import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Request } from '../http/exchange.ts'
import { type Impersonation, impersonationOf } from './impersonation.ts'

const impersonationIn = (request: Request): Impersonation | undefined =>
  impersonationOf(request, { cluster: 'local', path: '/x' })

/** Each pair is a separate header line, as on the wire. */
function sent(...lines: readonly (readonly [string, string])[]): Request {
  const headers: Record<string, string> = Object.create(null)
  for (const [name, value] of lines) {
    const key = name.toLowerCase()
    headers[key] = headers[key] === undefined ? value : `${headers[key]}, ${value}`
  }
  return { path: '/x', headers, rawHeaders: lines.flat() } as unknown as Request
}

/** The needed permissions in short form. */
function needsOf(impersonation: Impersonation | undefined): readonly string[] {
  return (impersonation?.needs ?? []).map(
    ({ verb, group, resource, subresource, namespace, name }) =>
      `${verb} ${group}/${resource}/${subresource} ${namespace}:${name}`,
  )
}

describe('impersonationOf', () => {
  test('a request without such headers has no impersonation', () => {
    assert.equal(impersonationIn(sent(['Accept', '*/*'])), undefined)
    assert.equal(impersonationIn(sent(['Impersonate-User', ''])), undefined)
    assert.equal(impersonationIn(sent(['Impersonate-Nothing', 'x'])), undefined)
    assert.equal(impersonationIn(sent(['Impersonate_User', 'x'])), undefined)
  })

  test('user, groups, uid and extra are read, and each value needs a permission of its own', () => {
    const found = impersonationIn(
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

  test('a service account needs a permission in its namespace, and has its groups unless others are sent', () => {
    const name = 'system:serviceaccount:a:bot'
    const alone = impersonationIn(sent(['Impersonate-User', name]))
    assert.deepEqual(needsOf(alone), ['impersonate /serviceaccounts/ a:bot'])
    assert.deepEqual(alone?.user.groups, [
      'system:serviceaccounts',
      'system:serviceaccounts:a',
      'system:authenticated',
    ])
    const grouped = impersonationIn(sent(['Impersonate-User', name], ['Impersonate-Group', 'g']))
    assert.deepEqual(grouped?.user.groups, ['g', 'system:authenticated'])
    for (const odd of [
      'system:serviceaccount:a',
      'system:serviceaccount:a:b:c',
      'system:serviceaccount::b',
    ]) {
      assert.deepEqual(needsOf(impersonationIn(sent(['Impersonate-User', odd]))), [
        `impersonate /users/ :${odd}`,
      ])
    }
  })

  test('a user is in one of the groups authenticated and unauthenticated, by default or as sent', () => {
    const groupsOf = (user: string, ...groups: readonly string[]): readonly string[] =>
      impersonationIn(
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

  test('other headers without a user, two users and too many values are a 400', () => {
    const refused = (pattern: RegExp, ...lines: readonly (readonly [string, string])[]): void => {
      assert.throws(
        () => impersonationIn(sent(...lines)),
        (error) =>
          String(error).match(pattern) !== null && (error as { code: number }).code === 400,
      )
    }
    refused(/missing/, ['Impersonate-Group', 'x'])
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

  test('a key that every object inherits is a key like any other', () => {
    const found = impersonationIn(
      sent(['Impersonate-User', 'a'], ['Impersonate-Extra-__proto__', 'x']),
    )
    assert.deepEqual(Object.keys(found?.user.extra ?? {}), ['__proto__'])
  })

  test('a value stays one value whatever it contains, and each value needs its permission', () => {
    const value = fc.string({ minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(value, fc.array(value, { maxLength: 5 }), (user, groups) => {
        const found = impersonationIn(
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
