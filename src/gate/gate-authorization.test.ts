import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Request } from '../http/exchange.ts'
import { admitted } from './admitted.fixture.ts'
import type { Attributes } from './attributes.ts'
import { alwaysAllow, openPaths, standingRights } from './authorization/standing-rights.ts'
import type { Authorizer, Decision } from './decisions.ts'
import { type Access, type Caller, Gate, type Trail } from './gate.ts'
import { makeRequest } from './request.fixture.ts'
import { readTarget } from './target.ts'
import type { User } from './user.ts'

const AUTHENTICATED = 'system:authenticated'
const users: Readonly<Record<string, User>> = {
  ada: { name: 'ada', groups: ['dev', AUTHENTICATED] },
  root: { name: 'root', groups: ['system:masters', AUTHENTICATED] },
}
const authenticator = {
  authenticate: async ({ headers }: Request) => users[headers['authorization'] ?? ''],
}

/** Allows these, written as `user verb resource/subresource name` or `user verb path`. */
function allowing(...permitted: readonly string[]): Authorizer {
  return {
    decide: async (user, attributes) => ({
      verdict: permitted.includes(`${user.name} ${inShort(attributes)}`) ? 'allow' : 'no-opinion',
    }),
  }
}

function inShort(attributes: Attributes): string {
  if (!attributes.isResource) return `${attributes.verb} ${attributes.path}`
  const { verb, resource, subresource, name } = attributes
  return `${verb} ${resource}${subresource === '' ? '' : `/${subresource}`} ${name}`.trim()
}

interface RequestOptions {
  readonly path?: string
  readonly as?: string
  readonly isLoopback?: boolean
  readonly headers?: Readonly<Record<string, string>>
}

function requestOf({
  path = '/livez',
  as,
  isLoopback = false,
  headers = {},
}: RequestOptions): Request {
  return makeRequest({
    path,
    headers: { ...headers, ...(as === undefined ? {} : { authorization: as }) },
    peer: { isLoopback },
  })
}

function admit(
  options: RequestOptions,
  authorizers: readonly Authorizer[],
  access: Access = { isOpenToHost: false },
): Promise<Caller> {
  const gate = new Gate({
    authenticators: [authenticator],
    authorizers,
    allowsAnonymous: false,
    isOpenToAll: openPaths(['/readyz', '/livez/p*', '/api*']),
  })
  const request = requestOf(options)
  return admitted(gate, request, readTarget(request, 'local'), access)
}

const EVENTS = '/apis/events.k8s.io/v1/namespaces/a/events'
const probe: Access = { isOpenToHost: true, isOpenToHostUsers: true }

describe('gate: paths open to all', () => {
  test('a path open to all needs no credentials, and accepts valid ones', async () => {
    assert.equal((await admit({ path: '/readyz' }, [])).user.name, 'system:anonymous')
    assert.equal((await admit({ path: '/livez/ping' }, [])).user.name, 'system:anonymous')
    assert.equal((await admit({ path: '/readyz', as: 'ada' }, [])).user.name, 'ada')
  })

  test('a pattern of open paths covers no objects and no other paths', async () => {
    await assert.rejects(admit({ path: '/api/v1/events' }, []), { code: 401 })
    await assert.rejects(admit({ path: '/api/v1/events', as: 'ada' }, []), { code: 403 })
    await assert.rejects(admit({ path: '/readyz/' }, []), { code: 401 })
    await assert.rejects(admit({ path: '/livez' }, []), { code: 401 })
  })
})

describe('gate: clusters', () => {
  const messageFor = async (path: string, headers = {}): Promise<string> => {
    const refused = await admit({ path, as: 'ada', headers }, []).catch((error) => error)
    return refused.message
  }
  const LISTED = 'User "ada" cannot list resource "events" in API group "events.k8s.io"'

  test('a refusal names the cluster if the path does', async () => {
    const plain = `events.events.k8s.io is forbidden: ${LISTED} in the namespace "a"`
    assert.equal(await messageFor(EVENTS), plain)
    assert.equal(await messageFor(`/clusters/prod${EVENTS}`), `${plain} in the cluster "prod"`)
    assert.equal(await messageFor(`/clusters/*${EVENTS}`), `${plain} in all clusters`)
    assert.equal(
      await messageFor('/clusters/prod/openapi/v3'),
      'forbidden: User "ada" cannot get path "/openapi/v3" in the cluster "prod"',
    )
    assert.equal(
      await messageFor(`/clusters/prod${EVENTS}`, { 'impersonate-user': 'bob' }),
      'users "bob" is forbidden: User "ada" cannot impersonate resource "users" in API group "" at the cluster scope in the cluster "prod"',
    )
  })

  test('permissions and impersonation are decided in the cluster of the path', async () => {
    const asked: string[] = []
    const inA: Authorizer = {
      decide: async (user, { cluster, verb }) => {
        asked.push(`${user.name} ${verb} ${cluster}`)
        return { verdict: cluster === 'a' ? 'allow' : 'no-opinion' }
      },
    }
    const headers = { 'impersonate-user': 'bob' }
    await admit({ path: `/clusters/a${EVENTS}`, as: 'ada', headers }, [inA])
    for (const prefix of ['', '/clusters/b', '/clusters/*']) {
      const path = `${prefix}${EVENTS}`
      await assert.rejects(admit({ path, as: 'ada', headers }, [inA]), { code: 403 })
    }
    assert.deepEqual(asked, [
      'ada impersonate a',
      'bob list a',
      'ada impersonate local',
      'ada impersonate b',
      'ada impersonate *',
    ])
  })
})

describe('gate: the trail', () => {
  /** Allows `/metrics`, with a reason. */
  class Explained implements Authorizer {
    readonly paths: string[] = []
    async decide(_user: User, { path }: Attributes): Promise<Decision> {
      if (path === '/unsure') return { verdict: 'no-opinion', isUnsure: true }
      return path === '/metrics' ? { verdict: 'allow' } : { verdict: 'no-opinion' }
    }
    reasonFor({ name }: User, { path }: Attributes): string {
      this.paths.push(path)
      return `because ${name} may read ${path}`
    }
  }

  async function decisionsOn(
    options: RequestOptions,
    authorizer: Authorizer,
    access: Access = { isOpenToHost: true },
    isRecorded = true,
  ): Promise<unknown[]> {
    const decisions: unknown[] = []
    const trail: Trail = {
      isRecorded,
      identified: () => {},
      impersonated: () => {},
      decided: (...decision) => decisions.push(decision),
    }
    const gate = new Gate({
      authenticators: [authenticator],
      authorizers: [standingRights, authorizer],
      allowsAnonymous: false,
      isOpenToAll: openPaths(['/readyz']),
    })
    const request = requestOf(options)
    await admitted(gate, request, readTarget(request, 'local'), { ...access, trail }).catch(
      () => {},
    )
    return decisions
  }

  test('reports the reason for a permission to the trail; standing rights and open paths have none', async () => {
    const explained = new Explained()
    assert.deepEqual(await decisionsOn({ path: '/metrics', as: 'ada' }, explained), [
      ['allow', 'because ada may read /metrics'],
    ])
    assert.deepEqual(await decisionsOn({ path: '/metrics', as: 'root' }, explained), [
      ['allow', ''],
    ])
    assert.deepEqual(await decisionsOn({ path: '/readyz' }, explained), [['allow', '']])
    assert.deepEqual(await decisionsOn({ isLoopback: true }, explained), [['allow', '']])
    const path = '/livez/log'
    assert.deepEqual(await decisionsOn({ path, as: 'ada', isLoopback: true }, explained, probe), [
      ['allow', ''],
    ])
  })

  test('reports a refusal, and a failure to decide, to the trail', async () => {
    const explained = new Explained()
    assert.deepEqual(await decisionsOn({ path: '/apis', as: 'ada' }, explained), [['forbid', '']])
    assert.deepEqual(await decisionsOn({ path: '/unsure', as: 'ada' }, explained), [
      [undefined, 'internal error'],
    ])
  })

  test('does not look for a reason that the trail does not record', async () => {
    const explained = new Explained()
    await admit({ path: '/metrics', as: 'ada' }, [explained])
    await decisionsOn({ path: '/metrics', as: 'ada' }, explained, undefined, false)
    assert.deepEqual(explained.paths, [])
  })
})

describe('gate: standing rights', () => {
  test('lets masters do everything, and other users read the overall health', async () => {
    await admit({ path: EVENTS, as: 'root' }, [standingRights])
    await admit({ path: '/livez', as: 'ada' }, [standingRights])
    for (const path of ['/livez/log', '/metrics', '/livez/', EVENTS]) {
      await assert.rejects(admit({ path, as: 'ada' }, [standingRights]), { code: 403 }, path)
    }
  })

  test('a single check is open to all processes on this host, and to other clients by permission', async () => {
    const path = '/livez/datastore'
    await admit({ path, isLoopback: true }, [], probe)
    await admit({ path, as: 'ada', isLoopback: true }, [], probe)
    await assert.rejects(admit({ path, as: 'ada' }, [], probe), { code: 403 })
    await assert.rejects(
      admit({ path, as: 'ada', isLoopback: true, headers: { via: 'x' } }, [], probe),
      { code: 403 },
    )
    await admit({ path, as: 'ada' }, [allowing(`ada get ${path}`)], probe)
  })
})

describe('gate: impersonation', () => {
  const asBob = { 'impersonate-user': 'bob' }

  test('impersonation needs a permission for each part of the user, and then that user’s permission', async () => {
    const headers = { ...asBob, 'impersonate-group': 'qa', 'impersonate-extra-a': 'x' }
    const all = [
      'ada impersonate users bob',
      'ada impersonate groups qa',
      'ada impersonate userextras/a x',
      'bob list events',
    ]
    const caller = await admit({ path: EVENTS, as: 'ada', headers }, [allowing(...all)])
    assert.deepEqual(caller.user, {
      name: 'bob',
      groups: ['qa', AUTHENTICATED],
      extra: { a: ['x'] },
      payer: 'ada',
    })
    for (const missing of all) {
      const rest = all.filter((one) => one !== missing)
      await assert.rejects(
        admit({ path: EVENTS, as: 'ada', headers }, [allowing(...rest)]),
        { code: 403 },
        missing,
      )
    }
  })

  test('a refused impersonation names both users', async () => {
    const headers = { ...asBob, 'impersonate-extra-scopes': 'x' }
    await assert.rejects(admit({ path: EVENTS, as: 'ada', headers }, []), {
      message:
        'users "bob" is forbidden: User "ada" cannot impersonate resource "users" in API group "" at the cluster scope',
    })
    const rights = allowing('ada impersonate users bob')
    await assert.rejects(admit({ path: EVENTS, as: 'ada', headers }, [rights]), {
      message:
        'userextras.authentication.k8s.io "x" is forbidden: User "ada" cannot impersonate resource "userextras/scopes" in API group "authentication.k8s.io" at the cluster scope',
    })
  })

  test('a request with impersonation does not have the permissions of its sender', async () => {
    const rights = [standingRights]
    await assert.rejects(admit({ path: EVENTS, as: 'root', headers: asBob }, rights), {
      message: /User "bob" cannot list/,
    })
  })

  test('unauthenticated clients cannot impersonate, not even on this host', async () => {
    await assert.rejects(admit({ path: EVENTS, headers: asBob }, []), { code: 401 })
    const onHost = { path: '/livez', isLoopback: true, headers: asBob }
    await assert.rejects(admit(onHost, [standingRights], probe), { code: 403 })
    const unused: Authorizer = { decide: () => assert.fail('an authorizer is called') }
    await assert.rejects(admit(onHost, [unused], probe), { code: 403 })
    await assert.rejects(admit({ path: '/readyz', headers: asBob }, [unused]), { code: 403 })
    await assert.rejects(admit({ path: '/readyz', headers: asBob }, [alwaysAllow]), { code: 403 })
  })

  test('reports the sender, the impersonated user and the decision to the trail', async () => {
    const calls: string[] = []
    const gate = new Gate({
      authenticators: [authenticator],
      authorizers: [standingRights, allowing('bob list events')],
      allowsAnonymous: false,
    })
    const request = requestOf({ path: EVENTS, as: 'root', headers: asBob })
    const trail: Trail = {
      identified: (user) => calls.push(`identified ${user.name}`),
      impersonated: (user) => calls.push(`impersonated ${user.name}`),
      decided: (decision) => calls.push(`decided ${decision}`),
      isRecorded: true,
    }
    const access = { isOpenToHost: false, trail }
    await admitted(gate, request, readTarget(request, 'local'), access)
    assert.deepEqual(calls, ['identified root', 'impersonated bob', 'decided allow'])
  })
})

describe('gate: an authorizer that fails', () => {
  const unsure: Authorizer = { decide: async () => ({ verdict: 'no-opinion', isUnsure: true }) }
  const says = (decision: Decision): Authorizer => ({ decide: async () => decision })
  const options = { path: EVENTS, as: 'ada' }

  test('a request that no authorizer could decide gets 503 with a Retry-After', async () => {
    await assert.rejects(admit(options, [unsure]), (error) => {
      const { code, details } = error as { code: number; details: object }
      assert.deepEqual([code, details], [503, { retryAfterSeconds: 1 }])
      return true
    })
    await assert.rejects(admit(options, [unsure, says({ verdict: 'no-opinion' })]), { code: 503 })
  })

  test('the decision of another authorizer counts', async () => {
    await admit(options, [unsure, says({ verdict: 'allow' })])
    await assert.rejects(admit(options, [unsure, says({ verdict: 'deny', reason: 'no' })]), {
      code: 403,
      message: /: no$/,
    })
  })
})
