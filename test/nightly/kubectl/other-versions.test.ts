/** Releases of kubectl between the oldest and the newest. */
import { kubectlSuite } from './suite.ts'

kubectlSuite('1.30')
kubectlSuite('1.33')
