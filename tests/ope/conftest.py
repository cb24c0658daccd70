from ward_logs import policies as policies
from ward_logs import task as task
