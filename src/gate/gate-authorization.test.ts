import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Request } from '../http/exchange.ts'
import { type Attributes, attributesOf } from './attributes.ts'
import { alwaysAllow } from './authorization/always-allow.ts'
import { openPaths, standingRights } from './authorization/standing-rights.ts'
import {
  type Access,
  type Authorizer,
  type Caller,
  type Decision,
  Gate,
  type Trail,
} from './gate.ts'
import type { User } from './user.ts'

const AUTHENTICATED = 'system:authenticated'
const users: Readonly<Record<string, User>> = {
  ada: { name: 'ada', groups: ['dev', AUTHENTICATED] },
  root: { name: 'root', groups: ['system:masters', AUTHENTICATED] },
}
const shown = {
  authenticate: async ({ headers }: Request) => users[headers['authorization'] ?? ''],
}

/** Allows what it is told to, as `user verb resource/subresource name` or `user verb path`. */
function allowing(...permitted: readonly string[]): Authorizer {
  return {
    decide: async (user, asked) => ({
      verdict: permitted.includes(`${user.name} ${inShort(asked)}`) ? 'allow' : 'no-opinion',
    }),
  }
}

function inShort(asked: Attributes): string {
  if (!asked.isResource) return `${asked.verb} ${asked.path}`
  const { verb, resource, subresource, name } = asked
  return `${verb} ${resource}${subresource === '' ? '' : `/${subresource}`} ${name}`.trim()
}

interface Asked {
  readonly path?: string
  readonly as?: string
  readonly isLoopback?: boolean
  readonly headers?: Readonly<Record<string, string>>
}

function requestOf({ path = '/livez', as, isLoopback = false, headers = {} }: Asked): Request {
  return {
    method: 'GET',
    path,
    query: new URLSearchParams(),
    headers: { ...headers, ...(as === undefined ? {} : { authorization: as }) },
    peer: { address: '', isLoopback, clientCertificate: () => undefined },
    signal: new AbortController().signal,
    body: async () => Buffer.alloc(0),
  }
}

function admit(
  asked: Asked,
  authorizers: readonly Authorizer[],
  access: Access = { isOpenToHost: false },
): Promise<Caller> {
  const gate = new Gate({
    authenticators: [shown],
    authorizers,
    allowsAnonymous: false,
    isOpenToAll: openPaths(['/readyz', '/livez/p*', '/api*']),
  })
  const request = requestOf(asked)
  return gate.admit(request, attributesOf(request), access)
}

const EVENTS = '/apis/events.k8s.io/v1/namespaces/a/events'
const probe: Access = { isOpenToHost: true, isOpenToHostUsers: true }

describe('gate: paths open to all', () => {
  test('are open without credentials, and with any that are right', async () => {
    assert.equal((await admit({ path: '/readyz' }, [])).user.name, 'system:anonymous')
    assert.equal((await admit({ path: '/livez/ping' }, [])).user.name, 'system:anonymous')
    assert.equal((await admit({ path: '/readyz', as: 'ada' }, [])).user.name, 'ada')
  })

  test('never stand for objects, nor for other paths', async () => {
    await assert.rejects(admit({ path: '/api/v1/events' }, []), { code: 401 })
    await assert.rejects(admit({ path: '/api/v1/events', as: 'ada' }, []), { code: 403 })
    await assert.rejects(admit({ path: '/readyz/' }, []), { code: 401 })
    await assert.rejects(admit({ path: '/livez' }, []), { code: 401 })
  })
})

describe('gate: what the trail hears', () => {
  /** Allows what it is told to, and can say why. */
  class Explained implements Authorizer {
    readonly asked: string[] = []
    async decide(_user: User, { path }: Attributes): Promise<Decision> {
      if (path === '/unsure') return { verdict: 'no-opinion', isUnsure: true }
      return path === '/metrics' ? { verdict: 'allow' } : { verdict: 'no-opinion' }
    }
    reasonFor({ name }: User, { path }: Attributes): string {
      this.asked.push(path)
      return `because ${name} may read ${path}`
    }
  }

  async function heard(
    asked: Asked,
    authorizer: Authorizer,
    access: Access = { isOpenToHost: true },
    isKept = true,
  ): Promise<unknown[]> {
    const told: unknown[] = []
    const trail: Trail = {
      isKept,
      identified: () => {},
      impersonated: () => {},
      decided: (...decision) => told.push(decision),
    }
    const gate = new Gate({
      authenticators: [shown],
      authorizers: [standingRights, authorizer],
      allowsAnonymous: false,
      isOpenToAll: openPaths(['/readyz']),
    })
    const request = requestOf(asked)
    await gate.admit(request, attributesOf(request), access, { trail }).catch(() => {})
    return told
  }

  test('why somebody may; of standing rights and open paths, no reason', async () => {
    const explained = new Explained()
    assert.deepEqual(await heard({ path: '/metrics', as: 'ada' }, explained), [
      ['allow', 'because ada may read /metrics'],
    ])
    assert.deepEqual(await heard({ path: '/metrics', as: 'root' }, explained), [['allow', '']])
    assert.deepEqual(await heard({ path: '/readyz' }, explained), [['allow', '']])
    assert.deepEqual(await heard({ isLoopback: true }, explained), [['allow', '']])
    const path = '/livez/log'
    assert.deepEqual(await heard({ path, as: 'ada', isLoopback: true }, explained, probe), [
      ['allow', ''],
    ])
  })

  test('that somebody may not, and that nobody could be asked', async () => {
    const explained = new Explained()
    assert.deepEqual(await heard({ path: '/apis', as: 'ada' }, explained), [['forbid', '']])
    assert.deepEqual(await heard({ path: '/unsure', as: 'ada' }, explained), [
      [undefined, 'internal error'],
    ])
  })

  test('reasons are not looked for when nobody listens', async () => {
    const explained = new Explained()
    await admit({ path: '/metrics', as: 'ada' }, [explained])
    await heard({ path: '/metrics', as: 'ada' }, explained, undefined, false)
    assert.deepEqual(explained.asked, [])
  })
})

describe('gate: standing rights', () => {
  test('masters may do everything, others with credentials ask for the health of the whole', async () => {
    await admit({ path: EVENTS, as: 'root' }, [standingRights])
    await admit({ path: '/livez', as: 'ada' }, [standingRights])
    for (const path of ['/livez/log', '/metrics', '/livez/', EVENTS]) {
      await assert.rejects(admit({ path, as: 'ada' }, [standingRights]), { code: 403 }, path)
    }
  })

  test('a single check is open to everybody on this host, and by permission to others', async () => {
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

  test('needs the permission for each part of who is meant, then that of who is meant', async () => {
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

  test('tells who may not impersonate whom', async () => {
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

  test('gives up what one may do oneself', async () => {
    const rights = [standingRights]
    await assert.rejects(admit({ path: EVENTS, as: 'root', headers: asBob }, rights), {
      message: /User "bob" cannot list/,
    })
  })

  test('is nothing for strangers, on this host neither', async () => {
    await assert.rejects(admit({ path: EVENTS, headers: asBob }, []), { code: 401 })
    const onHost = { path: '/livez', isLoopback: true, headers: asBob }
    await assert.rejects(admit(onHost, [standingRights], probe), { code: 403 })
    const nobody: Authorizer = { decide: () => assert.fail('somebody is asked') }
    await assert.rejects(admit(onHost, [nobody], probe), { code: 403 })
    await assert.rejects(admit({ path: '/readyz', headers: asBob }, [nobody]), { code: 403 })
    await assert.rejects(admit({ path: '/readyz', headers: asBob }, [alwaysAllow]), { code: 403 })
  })

  test('is told to whoever follows the request', async () => {
    const told: string[] = []
    const gate = new Gate({
      authenticators: [shown],
      authorizers: [standingRights, allowing('bob list events')],
      allowsAnonymous: false,
    })
    const request = requestOf({ path: EVENTS, as: 'root', headers: asBob })
    await gate.admit(
      request,
      attributesOf(request),
      { isOpenToHost: false },
      {
        trail: {
          identified: (user) => told.push(`identified ${user.name}`),
          impersonated: (user) => told.push(`impersonated ${user.name}`),
          decided: (decision) => told.push(`decided ${decision}`),
          isKept: true,
        },
      },
    )
    assert.deepEqual(told, ['identified root', 'impersonated bob', 'decided allow'])
  })
})

describe('gate: an authorizer that cannot find out', () => {
  const unsure: Authorizer = { decide: async () => ({ verdict: 'no-opinion', isUnsure: true }) }
  const says = (decision: Decision): Authorizer => ({ decide: async () => decision })
  const asked = { path: EVENTS, as: 'ada' }

  test('keeps out, and says that it is worth another try', async () => {
    await assert.rejects(admit(asked, [unsure]), (error) => {
      const { code, details } = error as { code: number; details: object }
      assert.deepEqual([code, details], [503, { retryAfterSeconds: 1 }])
      return true
    })
    await assert.rejects(admit(asked, [unsure, says({ verdict: 'no-opinion' })]), { code: 503 })
  })

  test('leaves it to the others when they have an opinion', async () => {
    await admit(asked, [unsure, says({ verdict: 'allow' })])
    await assert.rejects(admit(asked, [unsure, says({ verdict: 'deny', reason: 'no' })]), {
      code: 403,
      message: /: no$/,
    })
  })
})
