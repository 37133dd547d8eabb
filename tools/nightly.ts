/**
 * Runs the tests that take too long for every change, one script after the other, and prints a
 * summary. A script that fails does not stop the others; nothing is retried.
 */
import { spawnSync } from 'node:child_process'

/**
 * First the long tests of the stages of CI; then by severity of a failure: data, denial of service,
 * size.
 */
const SCRIPTS = [
  'test:integration:full',
  'test:e2e:full',
  'test:load',
  'test:ui:full',
  'test:release:full',
  'simulate:hour',
  'simulate:mirror:hour',
  'simulate:planted',
  'simulate:determinism',
  'simulate:etcd',
  'test:model',
  'test:fairness',
  'test:chaos',
  'test:chaos:planted',
  'test:mirror:chaos',
  'test:cut-replies',
  'test:targets',
  'test:clocks',
  'test:retention',
  'test:restore',
  'test:mirror',
  'test:attacks',
  'test:overload',
  'test:memory',
  'test:memory:container',
  'test:rolling',
  'test:upgrade',
  'test:events:full',
  'test:kubectl',
  'test:client-go',
  'test:client-go:full',
  'test:chart',
  // With KUBE_APISERVER, also the tutorial that mirrors a cluster.
  'follow-docs',
  'test:differential',
  'fuzz',
  'fuzz:protobuf',
  'bench',
  'bench:api',
  'bench:cost',
  'bench:storage',
  'bench:tracing',
  'bench:decode',
  'bench:yaml',
  'bench:map',
  'bench:memory',
  'bench:follow',
  'bench:replica',
  'bench:replicas',
  'bench:mirror',
  'bench:etcd',
]

const wanted = process.argv.slice(2)
const lines: string[] = []
for (const script of wanted.length > 0 ? wanted : SCRIPTS) {
  process.stdout.write(`\n== ${script}\n`)
  const startedAt = performance.now()
  const { status } = spawnSync('npm', ['run', '--silent', script], { stdio: 'inherit' })
  const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1)
  const line = `${status === 0 ? 'passed' : 'FAILED'}  ${script}, ${minutes} min`
  // Printed here as well, since a run that is cut off never reaches the summary.
  process.stdout.write(`${line}\n`)
  lines.push(line)
  if (status !== 0) process.exitCode = 1
}
process.stdout.write(`\n${lines.join('\n')}\n`)
