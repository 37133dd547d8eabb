import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type EventFields, fieldsIn } from '../storage/event-fields.ts'
import { KnownOwners } from './known-owners.ts'

const KEY = { cluster: 'east', namespace: 'shop' }

function event(reason: string, object: string, note: string, namespace = 'shop'): EventFields {
  const [kind = '', name = ''] = object.split('/')
  return fieldsIn({ reason, note, regarding: { kind, name, namespace } })
}

function about(object: string, namespace = 'shop'): EventFields {
  return event('BackOff', object, 'Back-off', namespace)
}

function found(owners: KnownOwners, object: string, namespace = 'shop', cluster = 'east'): string {
  const { kind, name, rule } = owners.resolve(cluster, about(object, namespace))
  return `${kind}/${name} by ${rule}`
}

function object(text: string): { readonly kind: string; readonly name: string } {
  const [kind = '', name = ''] = text.split('/')
  return { kind, name }
}

/** owner, reason, note, the object it tells of, and the workload of that. */
const TOLD: readonly (readonly [string, string, string, string, string])[] = [
  [
    'ReplicaSet/bare',
    'SuccessfulCreate',
    'Created pod: bare-x2k4q',
    'Pod/bare-x2k4q',
    'ReplicaSet/bare',
  ],
  [
    'ReplicaSet/web-7d9f8b6c5',
    'SuccessfulCreate',
    'Created pod: web-7d9f8b6c5-x2k4q',
    'Pod/web-7d9f8b6c5-x2k4q',
    'Deployment/web',
  ],
  [
    'ReplicaSet/bare',
    'SuccessfulDelete',
    'Deleted pod: bare-x2k4q',
    'Pod/bare-x2k4q',
    'ReplicaSet/bare',
  ],
  [
    'ReplicaSet/bare',
    'SuccessfulCreate',
    '(combined from similar events): Created pod: bare-x2k4q',
    'Pod/bare-x2k4q',
    'ReplicaSet/bare',
  ],
  [
    'ReplicationController/old',
    'SuccessfulCreate',
    'Created pod: old-x2k4q',
    'Pod/old-x2k4q',
    'ReplicationController/old',
  ],
  [
    'DaemonSet/agent-0',
    'SuccessfulCreate',
    'Created pod: agent-0-x2k4q',
    'Pod/agent-0-x2k4q',
    'DaemonSet/agent-0',
  ],
  [
    'Job/migrate',
    'SuccessfulCreate',
    'Created pod: migrate-x2k4q',
    'Pod/migrate-x2k4q',
    'Job/migrate',
  ],
  [
    'Job/nightly-29012345',
    'SuccessfulCreate',
    'Created pod: nightly-29012345-x2k4q',
    'Pod/nightly-29012345-x2k4q',
    'CronJob/nightly',
  ],
  [
    'StatefulSet/db',
    'SuccessfulCreate',
    'create Pod db-12345 in StatefulSet db successful',
    'Pod/db-12345',
    'StatefulSet/db',
  ],
  [
    'StatefulSet/db',
    'SuccessfulDelete',
    'delete Pod db-12345 in StatefulSet db successful',
    'Pod/db-12345',
    'StatefulSet/db',
  ],
  [
    'CronJob/nightly',
    'SuccessfulCreate',
    'Created job nightly-extra',
    'Job/nightly-extra',
    'CronJob/nightly',
  ],
  [
    'CronJob/nightly',
    'SuccessfulDelete',
    'Deleted job nightly-extra',
    'Job/nightly-extra',
    'CronJob/nightly',
  ],
  [
    'CronJob/nightly',
    'SawCompletedJob',
    'Saw completed job: nightly-extra, condition: Complete',
    'Job/nightly-extra',
    'CronJob/nightly',
  ],
  [
    'CronJob/nightly',
    'SawCompletedJob',
    'Saw completed job: nightly-extra, status: Failed',
    'Job/nightly-extra',
    'CronJob/nightly',
  ],
  [
    'Deployment/web',
    'ScalingReplicaSet',
    'Scaled up replica set web-odd to 3',
    'ReplicaSet/web-odd',
    'Deployment/web',
  ],
  [
    'Deployment/web',
    'ScalingReplicaSet',
    'Scaled up replica set web-odd to 3 from 2',
    'ReplicaSet/web-odd',
    'Deployment/web',
  ],
  [
    'Deployment/web',
    'ScalingReplicaSet',
    'Scaled down replica set web-odd from 3 to 0',
    'ReplicaSet/web-odd',
    'Deployment/web',
  ],
]

/** owner, reason, note and an object that must not be assigned. */
const REFUSED: readonly (readonly [string, string, string, string])[] = [
  ['Deployment/web', 'SuccessfulCreate', 'Created pod: web-a', 'Pod/web-a'],
  ['Service/web', 'SuccessfulCreate', 'Created pod: web-a', 'Pod/web-a'],
  ['Pod/web', 'SuccessfulCreate', 'Created pod: web-a', 'Pod/web-a'],
  ['CronJob/web', 'SuccessfulCreate', 'Created pod: web-a', 'Pod/web-a'],
  ['StatefulSet/web', 'SuccessfulCreate', 'Created pod: web-a', 'Pod/web-a'],
  [
    'StatefulSet/web',
    'SuccessfulCreate',
    'create Pod web-a in StatefulSet db successful',
    'Pod/web-a',
  ],
  ['ReplicaSet/web', 'SuccessfulCreate', 'Created pod: web-a ', 'Pod/web-a'],
  ['ReplicaSet/web', 'SuccessfulCreate', 'created pod: web-a', 'Pod/web-a'],
  ['ReplicaSet/web', 'SuccessfulCreate', 'I say: Created pod: web-a', 'Pod/web-a'],
  ['ReplicaSet/web', 'SuccessfulCreate', 'Created pod: cart-a', 'Pod/cart-a'],
  ['ReplicaSet/web', 'SuccessfulCreate', 'Created pod: other/web-a', 'Pod/web-a'],
  ['ReplicaSet/web', 'SuccessfulCreate', 'Created pod: ', 'Pod/'],
  ['ReplicaSet/web', 'Created', 'Created pod: web-a', 'Pod/web-a'],
  ['ReplicaSet/', 'SuccessfulCreate', 'Created pod: -a', 'Pod/-a'],
  ['Job/web', 'SuccessfulCreate', 'Created job web-a', 'Job/web-a'],
  [
    'ReplicaSet/web',
    'ScalingReplicaSet',
    'Scaled up replica set web-odd to 3',
    'ReplicaSet/web-odd',
  ],
  ['Deployment/web', 'ScalingReplicaSet', 'Scaled up replica set to 4 from 3', 'ReplicaSet/to'],
  [
    'ReplicaSet/web',
    'SuccessfulCreate',
    `Created pod: web-${'a'.repeat(300)}`,
    `Pod/web-${'a'.repeat(300)}`,
  ],
]

describe('KnownOwners', () => {
  for (const [owner, reason, note, child, workload] of TOLD) {
    test(`learns from "${note}"`, () => {
      const owners = new KnownOwners()
      owners.learn(KEY, event(reason, owner, note))
      assert.equal(found(owners, child), `${workload} by event`)
    })
  }

  for (const [owner, reason, note, child] of REFUSED) {
    test(`learns nothing from ${reason} of ${owner}: "${note.slice(0, 50)}"`, () => {
      const owners = new KnownOwners()
      owners.learn(KEY, event(reason, owner, note))
      assert.equal(owners.size, 0)
      assert.equal(found(owners, child), `${child} by self`)
    })
  }

  test('assigns only within the namespace and the cluster of the event', () => {
    const owners = new KnownOwners()
    owners.learn(KEY, event('SuccessfulCreate', 'Job/migrate', 'Created pod: migrate-x2k4q'))
    assert.equal(found(owners, 'Pod/migrate-x2k4q'), 'Job/migrate by event')
    assert.equal(found(owners, 'Pod/migrate-x2k4q', 'billing'), 'DaemonSet/migrate by name')
    assert.equal(found(owners, 'Pod/migrate-x2k4q', 'shop', 'west'), 'DaemonSet/migrate by name')
    const foreign = event('SuccessfulCreate', 'Job/a', 'Created pod: a-x2k4q', 'billing')
    owners.learn(KEY, foreign)
    assert.equal(found(owners, 'Pod/a-x2k4q', 'billing'), 'DaemonSet/a by name')
  })

  test('owner references win over events, before and after', () => {
    const owners = new KnownOwners()
    const told = event('SuccessfulCreate', 'Job/web', 'Created pod: web-x2k4q')
    owners.learn(KEY, told)
    owners.own('east', 'shop', object('Pod/web-x2k4q'), object('DaemonSet/web'))
    owners.learn(KEY, told)
    assert.equal(found(owners, 'Pod/web-x2k4q'), 'DaemonSet/web by owner')
  })

  test('walks from the pod over its ReplicaSet or Job', () => {
    const owners = new KnownOwners()
    owners.own('east', 'shop', object('Pod/odd'), object('ReplicaSet/odd-set'))
    assert.equal(found(owners, 'Pod/odd'), 'ReplicaSet/odd-set by owner')
    owners.own('east', 'shop', object('ReplicaSet/odd-set'), object('Rollout/web'))
    assert.equal(found(owners, 'Pod/odd'), 'Rollout/web by owner')
    owners.learn(KEY, event('SuccessfulCreate', 'CronJob/nightly', 'Created job nightly-odd'))
    owners.learn(
      KEY,
      event('SuccessfulCreate', 'Job/nightly-odd', 'Created pod: nightly-odd-x2k4q'),
    )
    assert.equal(found(owners, 'Pod/nightly-odd-x2k4q'), 'CronJob/nightly by event')
  })

  test('uses what is known of a ReplicaSet or Job for a pod that is known only by name', () => {
    const owners = new KnownOwners()
    owners.own('east', 'shop', object('ReplicaSet/web-7d9f8b6c5'), object('Rollout/web'))
    assert.equal(found(owners, 'Pod/web-7d9f8b6c5-x2k4q'), 'Rollout/web by name')
    owners.own('east', 'shop', object('Job/migrate'), undefined)
    assert.equal(found(owners, 'Pod/migrate-x2k4q'), 'Job/migrate by name')
  })

  test('an object without a controller, or of a node, is its own workload', () => {
    const owners = new KnownOwners()
    owners.own('east', 'shop', object('Pod/web-bcdfg'), undefined)
    assert.equal(found(owners, 'Pod/web-bcdfg'), 'Pod/web-bcdfg by owner')
    owners.own('east', 'shop', object('Pod/etcd-node-1'), object('Node/node-1'))
    assert.equal(found(owners, 'Pod/etcd-node-1'), 'Pod/etcd-node-1 by owner')
  })

  test('the owner of a deleted object is remembered until an event tells another', () => {
    const owners = new KnownOwners()
    owners.own('east', 'shop', object('Pod/web-x2k4q'), object('DaemonSet/web'))
    owners.disown('east', 'shop', object('Pod/web-x2k4q'))
    assert.equal(found(owners, 'Pod/web-x2k4q'), 'DaemonSet/web by owner')
    owners.learn(KEY, event('SuccessfulCreate', 'Job/web', 'Created pod: web-x2k4q'))
    assert.equal(found(owners, 'Pod/web-x2k4q'), 'Job/web by event')
    owners.own('east', 'shop', object('Pod/a-x2k4q'), undefined)
    owners.disown('east', 'shop', object('Pod/a-x2k4q'))
    assert.equal(found(owners, 'Pod/a-x2k4q'), 'Pod/a-x2k4q by owner')
    owners.disown('east', 'shop', object('Pod/never-seen'))
    assert.equal(found(owners, 'Pod/never-seen'), 'Pod/never-seen by self')
  })

  test('ends when objects own each other', () => {
    const owners = new KnownOwners()
    owners.own('east', 'shop', object('Job/a'), object('ReplicaSet/b'))
    owners.own('east', 'shop', object('ReplicaSet/b'), object('Job/a'))
    assert.equal(owners.resolve('east', about('Job/a')).rule, 'owner')
  })

  test('other kinds, and objects without a name, are their own workload', () => {
    const owners = new KnownOwners()
    assert.equal(found(owners, 'Node/node-1', ''), 'Node/node-1 by self')
    assert.equal(found(owners, 'Deployment/web-7d9f8b6c5'), 'Deployment/web-7d9f8b6c5 by self')
    assert.deepEqual(owners.resolve('east', fieldsIn({})), { kind: '', name: '', rule: 'self' })
  })

  test('is bounded by bytes: the oldest are forgotten', () => {
    const owners = new KnownOwners(100_000)
    for (let index = 0; index < 2_000; index++) {
      owners.learn(KEY, event('SuccessfulCreate', 'Job/many', `Created pod: many-x${index}`))
    }
    assert.ok(owners.bytes <= 100_000 && owners.bytes > 80_000, `${owners.bytes}`)
    assert.equal(found(owners, 'Pod/many-x1'), 'Pod/many-x1 by self')
    assert.equal(found(owners, 'Pod/many-x1999'), 'Job/many by event')
  })

  test('counts names beyond Latin-1 with two bytes for each character', () => {
    const bytesOf = (name: string) => {
      const owners = new KnownOwners()
      owners.own('east', 'shop', { kind: 'Pod', name }, { kind: 'Job', name: 'j' })
      return owners.bytes
    }
    assert.equal(bytesOf('д'.repeat(100)) - bytesOf('d'.repeat(100)), 100 + 'Pod\n'.length)
  })

  test('deleted objects do not displace those that exist, nor one namespace those of another', () => {
    const owners = new KnownOwners(100_000)
    for (let index = 0; index < 100; index++) {
      owners.own('east', 'shop', object(`Pod/stays-${index}x`), object('Rollout/stays'))
    }
    for (let index = 0; index < 2_000; index++) {
      const job = object(`Job/run-${index}`)
      owners.own('east', 'shop', job, object('CronJob/run'))
      owners.disown('east', 'shop', job)
      const other = { cluster: 'east', namespace: 'other' }
      const note = `Created pod: many-x${index}`
      const { regarding, ...fields } = event('SuccessfulCreate', 'Job/many', note)
      owners.learn(other, { ...fields, regarding: { ...regarding, namespace: 'other' } })
    }
    for (let index = 0; index < 100; index++) {
      assert.equal(found(owners, `Pod/stays-${index}x`), 'Rollout/stays by owner')
    }
  })
})
