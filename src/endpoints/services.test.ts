import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readTarget, type Target } from '../gate/target.ts'
import { type Service, Services } from './services.ts'

const handler = async () => ({ status: 200, headers: {}, body: '' })

function targetAt(path: string): Target {
  return readTarget({ method: 'GET', path, query: new URLSearchParams() }, 'local')
}

/** Serves everything below a prefix. */
function below(prefix: string, more: Partial<Service> = {}): Service {
  return {
    name: prefix,
    paths: [],
    isOpenToHost: false,
    find: ({ path }) => (path.startsWith(prefix) ? handler : undefined),
    ...more,
  }
}

function install(...all: readonly Service[]): Services {
  const services = new Services(all.map(({ name }) => name))
  for (const service of all) services.install(service)
  return services
}

const events = { group: 'events.k8s.io', name: 'events' }
const EVENTS_PATH = '/apis/events.k8s.io/v1/namespaces/shop/events'

describe('Services', () => {
  test('the owner of a resource is found, whatever was installed before', () => {
    const owner = below('/apis/events.k8s.io/v1/', { name: 'owner', resource: events })
    const services = install(below('/apis/'), owner)
    assert.equal(services.find(targetAt(EVENTS_PATH))?.service, owner)
    const other = targetAt('/apis/events.k8s.io/v1/namespaces/shop/others')
    assert.equal(services.find(other)?.service.name, '/apis/')
  })

  test('leaves targets that the owner of a resource does not serve to the others', () => {
    const owner = below('/apis/events.k8s.io/v1/', { name: 'owner', resource: events })
    const services = install(owner, below('/apis/'))
    const beta = targetAt('/apis/events.k8s.io/v1beta1/namespaces/shop/events')
    assert.equal(services.find(beta)?.service.name, '/apis/')
    assert.equal(services.find(targetAt('/livez')), undefined)
  })

  test('does not serve a server-wide service under a cluster, even if it owns the resource', () => {
    const wide = { isServerWide: true, resource: events }
    const services = install(below('/apis/events.k8s.io/v1/', wide))
    assert.notEqual(services.find(targetAt(EVENTS_PATH)), undefined)
    assert.equal(services.find(targetAt(`/clusters/prod${EVENTS_PATH}`)), undefined)
  })

  test('a resource has one owner', () => {
    const [one, two] = [below('/a', { resource: events }), below('/b', { resource: events })]
    assert.throws(() => install(one, two), /two services of events.k8s.io\/events/)
  })
})
