import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workloadByName } from './workload.ts'

const LONG = 'a-rather-long-name-of-a-service-in-a-large-company-of-today'

/** kind, name, and what is found: `Kind/name`, or `self`. */
const CASES: readonly (readonly [string, string, string])[] = [
  ['Pod', 'web-7d9f8b6c5-x2k4q', 'Deployment/web'],
  ['Pod', 'redis-master-7d9f8b6c5-bcdfg', 'Deployment/redis-master'],
  ['Pod', 'web-5b4d4c9f44-x2k4q', 'Deployment/web'],
  ['Pod', 'web-456789456-x2k4q', 'Deployment/web'],
  ['Pod', 'web-45678945-x2k4q', 'Deployment/web'],
  ['Pod', 'web-7d9f4-x2k4q', 'Deployment/web'],
  ['Pod', 'cart-xk2bcdfgh-x2k4q', 'Deployment/cart'],
  ['ReplicaSet', 'web-7d9f8b6c5', 'Deployment/web'],
  ['ReplicaSet', 'redis-master-7d9f8b6c5', 'Deployment/redis-master'],
  ['ReplicaSet', 'web', 'self'],
  ['ReplicaSet', 'web-db', 'self'],
  ['ReplicaSet', 'redis-master', 'self'],
  ['Pod', 'web-0', 'StatefulSet/web'],
  ['Pod', 'web-10', 'StatefulSet/web'],
  ['Pod', 'kafka-broker-9999', 'StatefulSet/kafka-broker'],
  ['Pod', 'web-03', 'self'],
  ['Pod', 'web-12345', 'self'],
  ['Pod', 'web-24567', 'DaemonSet/web'],
  ['Pod', 'web-bcdfg', 'DaemonSet/web'],
  ['Pod', 'node-local-dns-x2k4q', 'DaemonSet/node-local-dns'],
  ['Pod', 'redis-db-x2k4q', 'DaemonSet/redis-db'],
  ['Pod', 'web-https', 'self'],
  ['Pod', 'redis-master', 'self'],
  ['Pod', 'web', 'self'],
  ['Pod', 'x2k4q', 'self'],
  ['Pod', '-x2k4q', 'self'],
  ['Pod', '', 'self'],
  ['Pod', 'report-29012345-x2k4q', 'CronJob/report'],
  ['Pod', 'report-29012345-0-x2k4q', 'CronJob/report'],
  ['Pod', 'backup-20240131-x2k4q', 'Job/backup-20240131'],
  ['Pod', 'deploy-1700000000-x2k4q', 'Job/deploy-1700000000'],
  ['Pod', 'build-12345-x2k4q', 'Job/build-12345'],
  ['Pod', 'agent-03-x2k4q', 'DaemonSet/agent-03'],
  ['Pod', 'train-0-x2k4q', 'Job/train'],
  ['Pod', 'train-117-x2k4q', 'Job/train'],
  ['Job', 'report-29012345', 'CronJob/report'],
  ['Job', 'backup-20240131', 'self'],
  ['Job', 'migrate-3', 'self'],
  ['Job', 'migrate', 'self'],
  ['Pod', 'kube-apiserver-node-1', 'self'],
  ['Pod', 'kube-proxy-x2k4q', 'DaemonSet/kube-proxy'],
  ['Deployment', 'web-7d9f8b6c5', 'self'],
  ['Node', 'node-1', 'self'],
  ['constructor', '__proto__-0', 'self'],
  // Names that are cut to 58 characters before the suffix.
  ['Pod', `${LONG.slice(0, 50)}-7d9f8b6x2k4q`, `Deployment/${LONG.slice(0, 50)}`],
  ['Pod', `${LONG.slice(0, 48)}-7d9f8b6c5x2k4q`, `Deployment/${LONG.slice(0, 48)}`],
  ['Pod', `${LONG.slice(0, 52)}-29012x2k4q`, `CronJob/${LONG.slice(0, 52)}`],
  ['Pod', `${LONG.slice(0, 57)}-x2k4q`, `Deployment/${LONG.slice(0, 57)}`],
  ['Pod', `${LONG.slice(0, 56)}-x2k4q`, `DaemonSet/${LONG.slice(0, 56)}`],
  ['Pod', `${LONG.slice(0, 58)}x2k4q`, 'self'],
  ['Pod', `${LONG.slice(0, 54)}-10-x2k4q`, 'self'],
]

describe('the workload of an object, by its name', () => {
  for (const [kind, name, expected] of CASES) {
    test(`${kind} ${name}`, () => {
      const workload = workloadByName({ kind, name })
      const found = `${workload.kind}/${workload.name}`
      if (expected === 'self') assert.deepEqual(workload, { kind, name, rule: 'self' })
      else assert.deepEqual([found, workload.rule], [expected, 'name'])
    })
  }
})
