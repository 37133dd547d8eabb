import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type EventFields, fieldsIn } from '../storage/event-fields.ts'
import { nodeOf } from './node.ts'

const POD = { kind: 'Pod', namespace: 'shop', name: 'web-0', uid: 'u1' }
const NODE = { kind: 'Node', name: 'node-1' }

describe('the node of an event', () => {
  test('is the object itself', () => {
    assert.equal(
      nodeOf(fieldsIn({ regarding: NODE, reportingController: 'node-controller' })),
      'node-1',
    )
  })

  test('is the host of a kubelet, in the events of both recorders and of old kubelets', () => {
    const old = { reportingController: 'kubelet', reportingInstance: 'node-1' }
    const source = { component: 'kubelet', host: 'node-1' }
    const events = [
      { ...old, deprecatedSource: source },
      { deprecatedSource: source },
      old,
      { reportingController: 'kubelet', reportingInstance: 'kubelet-node-1' },
    ]
    for (const event of events)
      assert.equal(nodeOf(fieldsIn({ ...event, regarding: POD })), 'node-1')
  })

  test('is that of a node whose name begins like the prefix of the newer recorder', () => {
    const source = { component: 'kubelet', host: 'kubelet-1' }
    const event = {
      reportingController: 'kubelet',
      reportingInstance: 'kubelet-1',
      deprecatedSource: source,
    }
    assert.equal(nodeOf(fieldsIn({ ...event, regarding: POD })), 'kubelet-1')
  })

  test('is not the host of another controller', () => {
    const event = {
      reportingController: 'default-scheduler',
      reportingInstance: 'scheduler-master-1',
    }
    assert.equal(nodeOf(fieldsIn({ ...event, regarding: POD, reason: 'FailedScheduling' })), '')
    const source = { component: 'replicaset-controller', host: 'master-1' }
    assert.equal(nodeOf(fieldsIn({ deprecatedSource: source, regarding: POD })), '')
  })

  test('is where the scheduler put the pod', () => {
    assert.equal(nodeOf(scheduled('Successfully assigned shop/web-0 to node-1')), 'node-1')
    assert.equal(nodeOf(scheduled('Successfully assigned web-0 to node-1')), 'node-1')
    const wrong = [
      'Successfully assigned billing/web-0 to node-1',
      'Successfully assigned shop/web-1 to node-1',
      'Successfully assigned shop/web-0',
      'Successfully assigned shop/web-0 to node-1 or to node-2',
      'assigned shop/web-0 to node-1',
    ]
    for (const note of wrong) assert.equal(nodeOf(scheduled(note)), '', note)
  })
})

function scheduled(note: string, uid = 'u1'): EventFields {
  return fieldsIn({ reason: 'Scheduled', note, regarding: { ...POD, uid } })
}
