import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readChecks, troublesIn } from './health.ts'

const RED = `[+]ping ok
[-]log failed: reason withheld
[-]datastore failed: reason withheld
[-]poststarthook/rbac/bootstrap-roles failed: reason withheld
[-]poststarthook/x failed: reason withheld
[-]novelty failed: reason withheld
[+]shutdown ok
warn: some health checks cannot be excluded
readyz check failed
`

test('parses the verbose text', () => {
  const checks = readChecks(RED)
  assert.equal(checks.length, 7)
  assert.deepEqual(checks[0], { name: 'ping', isOk: true })
  assert.deepEqual(checks[2], { name: 'datastore', isOk: false })
  assert.deepEqual(readChecks('ok'), [])
})

test('reports each kind of trouble once, worst first', () => {
  assert.deepEqual(
    troublesIn(readChecks(RED)).map(({ check, title }) => `${check}: ${title}`),
    [
      'datastore: etcd does not respond',
      'poststarthook/rbac/bootstrap-roles: This replica is starting',
      'log: The log of this replica is stuck',
      'novelty: A check fails',
    ],
  )
  assert.deepEqual(troublesIn([{ name: 'ping', isOk: true }]), [])
})
