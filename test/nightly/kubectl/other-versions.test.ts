/** Releases of kubectl between the oldest and the newest; all of them for one cluster as well. */
import { OLDEST } from './kubectl.ts'
import { kubectlSuite } from './suite.ts'

kubectlSuite(OLDEST)
kubectlSuite('1.30')
kubectlSuite('1.33')
kubectlSuite('1.37')
for (const minor of [27, 28, 29, 30, 31, 32, 33, 36, 37])
  kubectlSuite(`1.${minor}`, '/clusters/prod-eu')
