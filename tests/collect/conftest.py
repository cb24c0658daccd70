from sac_runs import whole as whole
