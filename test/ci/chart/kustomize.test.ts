/** The kustomize base is what the chart renders, and the example overlay builds on it. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { basePath, renderBase } from '../../../tools/kustomize-base.ts'
import { find, manifestsIn } from '../../support/chart.ts'
import { structureProblems } from '../../support/kubernetes-structure.ts'

const root = join(import.meta.dirname, '../../..')
const kubectl = join(root, '.cache/kubectl-1.36/usr/bin/kubectl')

test('deploy/base is up to date with the chart', () => {
  assert.equal(readFileSync(basePath, 'utf8'), renderBase(), 'npm run deploy:base')
})

test('deploy/overlays/example replaces what belongs to an operator', () => {
  const overlay = join(root, 'deploy/overlays/example')
  const manifests = manifestsIn(execFileSync(kubectl, ['kustomize', overlay], { encoding: 'utf8' }))
  assert.deepEqual(manifests.flatMap(structureProblems), [])
  const pod = find(manifests, 'Deployment')['spec'].template.spec
  const [{ image, args }] = pod.containers
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  assert.equal(image, `registry.example.com/tidings:${version}`)
  assert.match(args[0], /^--etcd-servers=https:\/\/etcd-0/)
  const roles = find(manifests, 'ConfigMap').metadata.name
  const volume = pod.volumes.find((each: { readonly name: string }) => each.name === 'roles')
  assert.equal(volume.configMap.name, roles)
})
