"""What each provider tells a node about itself and the others, one module a provider.

Every module has ``resolve(env, spec) -> Cluster``, which reads the provider's files and variables and raises
LaunchError with the one that is missing or wrong. Only the module of the provider at hand is imported.

local      CLOUDTRAIN_* variables of ``cloudtrain run``
sagemaker  /opt/ml/input/config/*.json
vertex     CLUSTER_SPEC and folders as gs:// URIs
azureml    the variables of a PyTorch distribution, and what stands in for them
other      CLOUDTRAIN_* variables, for providers that are not named here
places     where /opt/ml and /gcs lie on this node
reading    variables and files, with errors that name them
"""
